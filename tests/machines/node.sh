#!/usr/bin/env bash
# The first process of a node, in namespaces of its own (network, mounts, processes). What it
# mounts and starts ends with it, whoever ends it.
# Arguments: NAME NUMBER FOLDER LOGS PROGRAMS KUBECONFIG PAUSE-IMAGE
set -euo pipefail
name=$1 number=$2 folder=$3 logs=$4 programs=$5 kubeconfig=$6 pause=$7
trap 'exit 0' TERM
ulimit -n "$(ulimit -Hn)"

# Wherever a program writes by habit: this node's own.
mount -t tmpfs -o mode=755 tmpfs /run
for path in /var/lib /var/log; do
  mkdir -p "$folder$path"
  mount --bind "$folder$path" "$path"
done

# The kubelet sets these for the whole machine, unless it finds them set.
mkdir -p "$folder/settings"
for setting in vm/overcommit_memory=1 kernel/panic=10 kernel/panic_on_oops=1 \
  kernel/keys/root_maxkeys=1000000 kernel/keys/root_maxbytes=25000000; do
  file=$folder/settings/$(basename "${setting%=*}")
  echo "${setting#*=}" >"$file"
  mount --bind "$file" "/proc/sys/${setting%=*}"
done

for controller in /sys/fs/cgroup/*/; do
  mkdir -p "$controller/agentworld-$name"
done
for file in cpuset.cpus cpuset.mems; do
  cat "/sys/fs/cgroup/cpuset/$file" >"/sys/fs/cgroup/cpuset/agentworld-$name/$file"
done

until ip link show eth0 >/dev/null 2>&1; do sleep 0.05; done
ip link set lo up
ip address add "10.99.0.1$number/24" dev eth0
ip link set eth0 up
ip route add default via 10.99.0.1
echo 1 >/proc/sys/net/ipv4/ip_forward

mkdir -p "$folder/cni"
# A link for each pod and not a bridge: what a pod sends to a Service in its own node is routed,
# so that the answer comes back as the Service's.
cat >"$folder/cni/pods.conflist" <<END
{"cniVersion": "0.4.0", "name": "pods", "plugins": [{"type": "ptp", "ipam": {
  "type": "host-local", "ranges": [[{"subnet": "10.98.$number.0/24"}]],
  "routes": [{"dst": "0.0.0.0/0"}]}}]}
END
cat >"$folder/containerd.toml" <<END
version = 2
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "$pause"
  restrict_oom_score_adj = true
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "/usr/lib/cni"
    conf_dir = "$folder/cni"
  [plugins."io.containerd.grpc.v1.cri".containerd]
    default_runtime_name = "runc"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"
END
# Nobody but the API server reaches it, over a wire that is the cluster's alone.
cat >"$folder/kubelet.yaml" <<END
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
authentication: {anonymous: {enabled: true}, webhook: {enabled: false}}
authorization: {mode: AlwaysAllow}
readOnlyPort: 0
cgroupRoot: /agentworld-$name
cgroupDriver: cgroupfs
enforceNodeAllocatable: []
failSwapOn: false
oomScoreAdj: 0
makeIPTablesUtilChains: false
clusterDomain: cluster.local
clusterDNS: [10.99.0.1]
resolvConf: ""
evictionHard: {memory.available: 100Mi, nodefs.available: 1%, imagefs.available: 1%}
nodeStatusUpdateFrequency: 2s
# A dozen pods that start at once wait for no turn at the API server.
kubeAPIQPS: 100
kubeAPIBurst: 200
# Nothing is pulled again: what a pod is to run stays, however full the machine's disk is.
imageGCHighThresholdPercent: 100
maxPods: 60
END

containerd --config "$folder/containerd.toml" >"$logs/$name-containerd.log" 2>&1 &
until [ -S /run/containerd/containerd.sock ]; do sleep 0.05; done
"$programs/kubelet" --config="$folder/kubelet.yaml" --kubeconfig="$kubeconfig" \
  --container-runtime=remote \
  --container-runtime-endpoint=unix:///run/containerd/containerd.sock \
  --hostname-override="$name" --node-ip="10.99.0.1$number" >"$logs/$name-kubelet.log" 2>&1 &
"$programs/kube-proxy" --kubeconfig="$kubeconfig" --proxy-mode=iptables \
  --hostname-override="$name" --cluster-cidr=10.98.0.0/16 --conntrack-max-per-core=0 \
  --conntrack-tcp-timeout-established=0 --conntrack-tcp-timeout-close-wait=0 \
  >"$logs/$name-kube-proxy.log" 2>&1 &
wait -n
echo "a program of $name ended; see the logs in $logs"
exit 1

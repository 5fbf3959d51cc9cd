{{/* An image of ours by its digest, or by a tag; takes the chart's context and the image. */}}
{{- define "agentworld.image" -}}
{{- $context := index . 0 -}}
{{- $image := index . 1 -}}
{{- $name := printf "%s/%s" $context.Values.images.registry $image.name -}}
{{- include "agentworld.pinned" (list $context $name $image.digest ($image.tag | default $context.Chart.AppVersion)) -}}
{{- end -}}

{{/* Takes the chart's context, a name, a digest or nothing, and a tag. */}}
{{- define "agentworld.pinned" -}}
{{- $context := index . 0 -}}
{{- $name := index . 1 -}}
{{- with index . 2 -}}
{{ $name }}@{{ . }}
{{- else -}}
{{- $tagged := printf "%s:%s" $name (index . 3) -}}
{{- if not $context.Values.images.allowTags -}}
{{- fail (printf "the image %s has no digest; write the digests of your images into a values file with tools/image_values.py, or set images.allowTags to true" $tagged) -}}
{{- end -}}
{{ $tagged }}
{{- end -}}
{{- end -}}

{{/* The restricted pod security standard, for a pod of a user and group of this number. */}}
{{- define "agentworld.podSecurity" -}}
runAsNonRoot: true
runAsUser: {{ . }}
runAsGroup: {{ . }}
fsGroup: {{ . }}
fsGroupChangePolicy: OnRootMismatch
seccompProfile: {type: RuntimeDefault}
{{- end -}}

{{- define "agentworld.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end -}}

{{/* Where pods of a component run; takes the chart's context, the component and its values. */}}
{{- define "agentworld.placement" -}}
{{- $context := index . 0 -}}
{{- $values := index . 2 -}}
{{- with $context.Values.images.pullSecrets }}
imagePullSecrets: {{ toYaml . | nindent 2 }}
{{- end }}
{{- with $values.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- with $values.nodeSelector }}
nodeSelector: {{ toYaml . | nindent 2 }}
{{- end }}
{{- with $values.tolerations }}
tolerations: {{ toYaml . | nindent 2 }}
{{- end }}
topologySpreadConstraints:
  {{- $own := dict "labelSelector" (dict "matchLabels" (include "agentworld.selectorLabels" (list $context (index . 1)) | fromYaml)) }}
  {{- $overNodes := dict "maxSkew" 1 "topologyKey" "kubernetes.io/hostname" "whenUnsatisfiable" "ScheduleAnyway" }}
  {{- range $values.topologySpreadConstraints | default (list $overNodes) }}
  - {{ merge (deepCopy .) $own | toYaml | nindent 4 }}
  {{- end }}
{{- end -}}

{{/* Labels and annotations of a component's pods, of which ours win; takes the chart's context, the
component, its values, and annotations of ours. */}}
{{- define "agentworld.podMetadata" -}}
{{- $values := index . 2 -}}
labels: {{ merge (include "agentworld.podLabels" . | fromYaml) $values.podLabels | toYaml | nindent 2 }}
{{- with merge (index . 3) $values.podAnnotations }}
annotations: {{ toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{/* Keeps a pod on the node of the service's pods where one claim holds them there. */}}
{{- define "agentworld.besideService" -}}
{{- if include "agentworld.oneNode" . -}}
affinity:
  podAffinity:
    requiredDuringSchedulingIgnoredDuringExecution:
      - topologyKey: kubernetes.io/hostname
        labelSelector:
          matchLabels: {{ include "agentworld.selectorLabels" (list . "service") | nindent 12 }}
{{- end -}}
{{- end -}}

{{/* Not empty where a claim of one node holds all replicas of the service there: they leave it
together, so that no budget may keep one back. */}}
{{- define "agentworld.oneNode" -}}
{{- with .Values.stores.claim }}{{ if and .enabled (eq .accessMode "ReadWriteOnce") }}yes{{ end }}{{ end -}}
{{- end -}}

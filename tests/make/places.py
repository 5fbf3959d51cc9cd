"""The placement of a multi-node training stage, with every field set."""

from agentworld_pipelines.placement import Place

PLACE = Place.model_validate(
    {
        "image": "mirror.example/agentworld:7",
        "nodes": {"count": 2},
        "node_selector": {"pool": "h100"},
        "tolerations": [
            {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"},
            {"key": "spot", "value": "true", "effect": "NoExecute", "toleration_seconds": 0},
        ],
        "accelerator": {"type": "nvidia.com/gpu", "count": 8},
        "requests": {"cpu": 32, "memory": "256Gi"},
        "limits": {"memory": "512Gi"},
        "shared_memory": "64Gi",
        "scratch": "200Gi",
        "volumes": {"agentworld-stores": "/stores", "models": "/models"},
        "secrets": {"bucket": {"access_key": "AWS_ACCESS_KEY_ID"}},
        "environment": {"OMP_NUM_THREADS": "4"},
        "queue": "h100",
        "priority_class": "nightly",
        "labels": {"azure.workload.identity/use": "true"},
        "image_pull_secrets": ["mirror"],
        "service_account": "trainer",
        "retries": {"times": 20, "factor": 1, "most_seconds": 1_209_600},
    }
)

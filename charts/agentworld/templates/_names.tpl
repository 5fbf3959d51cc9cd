{{- define "agentworld.name" -}}
{{- if contains "agentworld" .Release.Name -}}
{{- .Release.Name | trunc 40 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-agentworld" (.Release.Name | trunc 29 | trimSuffix "-") -}}
{{- end -}}
{{- end -}}

{{/* What pods of a component are selected by; takes the chart's context and the component. */}}
{{- define "agentworld.selectorLabels" -}}
{{- $context := index . 0 -}}
app.kubernetes.io/name: agentworld
app.kubernetes.io/instance: {{ $context.Release.Name }}
app.kubernetes.io/component: {{ index . 1 }}
{{- end -}}

{{/* No version: pods are not made anew where nothing in them changes. */}}
{{- define "agentworld.podLabels" -}}
{{ include "agentworld.selectorLabels" . }}
app.kubernetes.io/part-of: agentworld
{{- end -}}

{{- define "agentworld.labels" -}}
{{- $context := index . 0 -}}
{{ include "agentworld.podLabels" . }}
app.kubernetes.io/version: {{ $context.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ $context.Release.Service }}
helm.sh/chart: {{ $context.Chart.Name }}-{{ $context.Chart.Version }}
{{- end -}}

{{/* Names of what several components need. */}}
{{- define "agentworld.keysSecret" -}}
{{- .Values.keys.existingSecret | default (printf "%s-keys" (include "agentworld.name" .)) -}}
{{- end -}}
{{- define "agentworld.databaseSecret" -}}
{{- .Values.database.existingSecret | default (printf "%s-database" (include "agentworld.name" .)) -}}
{{- end -}}
{{- define "agentworld.webhook" -}}
{{- printf "%s-webhook" (include "agentworld.name" .) -}}
{{- end -}}
{{- define "agentworld.webhookHost" -}}
{{- printf "%s.%s.svc" (include "agentworld.webhook" .) .Release.Namespace -}}
{{- end -}}
{{- define "agentworld.accessConfigMap" -}}
{{- .Values.access.existingConfigMap | default (printf "%s-access" (include "agentworld.name" .)) -}}
{{- end -}}
{{- define "agentworld.storesClaim" -}}
{{- .Values.stores.claim.existing | default (printf "%s-stores" (include "agentworld.name" .)) -}}
{{- end -}}
{{/* The ServiceAccount of a component; takes the chart's context and the component. */}}
{{- define "agentworld.accountName" -}}
{{- $context := index . 0 -}}
{{- $component := index . 1 -}}
{{- $account := (index $context.Values $component).serviceAccount -}}
{{- if not (or $account.create $account.name) -}}
{{- fail (printf "%s.serviceAccount.create is false; name an account that exists in %s.serviceAccount.name" $component $component) -}}
{{- end -}}
{{- $account.name | default (printf "%s-%s" (include "agentworld.name" $context) $component) -}}
{{- end -}}
{{- define "agentworld.engineAccount" -}}
{{- with .Values.engines.serviceAccount -}}
{{- .name | default (ternary (printf "%s-engine" (include "agentworld.name" $)) "" .create) -}}
{{- end -}}
{{- end -}}
{{/* Of all namespaces, for what none holds. */}}
{{- define "agentworld.clusterName" -}}
{{- printf "%s-%s" (include "agentworld.name" .) .Release.Namespace | trimSuffix "-" -}}
{{- end -}}

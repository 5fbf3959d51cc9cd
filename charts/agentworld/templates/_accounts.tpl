{{/* The ServiceAccount of a component, if the chart makes it; takes the chart's context and the
component. Annotations say which identity it has in a cloud. */}}
{{- define "agentworld.account" -}}
{{- $context := index . 0 -}}
{{- $component := index . 1 -}}
{{- with (index $context.Values $component).serviceAccount }}
{{- if .create }}
apiVersion: v1
kind: ServiceAccount
metadata:
  name: {{ include "agentworld.accountName" (list $context $component) }}
  labels: {{ include "agentworld.labels" (list $context $component) | nindent 4 }}
  {{- with .annotations }}
  annotations: {{ toYaml . | nindent 4 }}
  {{- end }}
{{- end }}
{{- end }}
{{- end -}}

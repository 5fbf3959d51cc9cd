{{- define "agentworld.backupClaim" -}}
{{- .Values.backup.claim.existing | default (printf "%s-backup" (include "agentworld.name" .)) -}}
{{- end -}}

{{/* The addresses of the databases; takes the chart's context and the Secret that has them. */}}
{{- define "agentworld.databaseUrls" -}}
{{- $secret := index . 1 -}}
- name: LEDGER_URL
  valueFrom: {secretKeyRef: {name: {{ $secret }}, key: agentworld-url}}
{{- with (index . 0).Values }}
{{- if and .mlflow.enabled .backup.mlflow }}
- name: MLFLOW_URL
  valueFrom: {secretKeyRef: {name: {{ $secret }}, key: mlflow-url}}
{{- end }}
{{- end }}
{{- with (index . 0).Values.backup.extraEnv }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* The program that copies files between the stores and the backups. */}}
{{- define "agentworld.backupContainer" -}}
image: {{ include "agentworld.image" (list . .Values.images.control) }}
imagePullPolicy: {{ .Values.images.pullPolicy }}
{{- with .Values.backup.storesSecret | default .Values.stores.existingSecret }}
envFrom:
  - secretRef: {name: {{ . }}}
{{- end }}
resources: {{ toYaml .Values.backup.resources | nindent 2 }}
securityContext: {{ include "agentworld.containerSecurity" . | nindent 2 }}
terminationMessagePolicy: FallbackToLogsOnError
{{- end -}}

{{/* Where PostgreSQL's own programs dump and restore. */}}
{{- define "agentworld.dumpContainer" -}}
image: {{ with .Values.images.postgres }}{{ include "agentworld.pinned" (list $ .name .digest .tag) }}{{ end }}
imagePullPolicy: {{ .Values.images.pullPolicy }}
resources: {{ toYaml .Values.backup.resources | nindent 2 }}
securityContext: {{ include "agentworld.containerSecurity" . | nindent 2 }}
volumeMounts:
  - {name: work, mountPath: /work}
  - {name: tmp, mountPath: /tmp}
{{- end -}}

{{- define "agentworld.backupVolumes" -}}
- name: work
  emptyDir: {sizeLimit: {{ .Values.backup.dumpSize }}}
{{- if hasPrefix "/" .Values.backup.url }}
- name: backups
  persistentVolumeClaim: {claimName: {{ include "agentworld.backupClaim" . }}}
{{- end }}
{{- if .Values.stores.claim.enabled }}
- name: stores
  persistentVolumeClaim: {claimName: {{ include "agentworld.storesClaim" . }}}
{{- end }}
- {name: tmp, emptyDir: {sizeLimit: 1Gi}}
{{- end -}}

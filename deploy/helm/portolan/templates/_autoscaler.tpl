{{- define "portolan.autoscalerName" -}}
{{- include "coredns.fullname" . }}-autoscaler
{{- end -}}

{{- define "portolan.autoscalerMetadata" -}}
{{- $of := dict "root" .root "name" (include "portolan.autoscalerName" .root) "suffix" "-autoscaler" -}}
{{- include "portolan.metadata" (merge $of (omit . "root")) -}}
{{- end -}}

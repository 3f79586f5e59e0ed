{{/*
Names and labels. They are those of the chart `coredns`, so that `helm upgrade` keeps the selectors of its releases, which
are immutable. The templates `coredns.*` exist in that chart, too; values such as `topologySpreadConstraints` may use them.
*/}}

{{- define "coredns.name" -}}
{{- default "coredns" .Values.nameOverride | trunc 63 | trimSuffix "-" -}}
{{- end -}}

{{- define "coredns.fullname" -}}
{{- $name := default "coredns" .Values.nameOverride -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 63 | trimSuffix "-" -}}
{{- else if contains $name .Release.Name -}}
{{- .Release.Name | trunc 63 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name $name | trunc 63 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "coredns.k8sapplabel" -}}
{{- default "coredns" .Values.k8sAppLabelOverride | trunc 63 | trimSuffix "-" -}}
{{- end -}}

{{- define "coredns.serviceAccountName" -}}
{{- if .Values.serviceAccount.create -}}
{{- default (include "coredns.fullname" .) .Values.serviceAccount.name -}}
{{- else -}}
{{- default "default" .Values.serviceAccount.name -}}
{{- end -}}
{{- end -}}

{{- define "coredns.clusterRoleName" -}}
{{- default (include "coredns.fullname" .) (.Values.clusterRole).nameOverride -}}
{{- end -}}

{{- define "coredns.labels" -}}
{{- include "portolan.labels" (dict "root" .) -}}
{{- end -}}

{{- define "portolan.deploymentName" -}}
{{- default (include "coredns.fullname" .) .Values.deployment.name -}}
{{- end -}}

{{- define "portolan.serviceName" -}}
{{- default (include "coredns.fullname" .) .Values.service.name -}}
{{- end -}}

{{- define "portolan.nodeName" -}}
{{- default (printf "%s-node" (include "coredns.fullname" .)) (.Values.node).name -}}
{{- end -}}

{{- define "portolan.upstreamServiceName" -}}
{{- default (printf "%s-upstream" (include "coredns.fullname" .)) ((.Values.node).upstreamService).name -}}
{{- end -}}

{{/* Labels that select the pods of a component. Takes `root`, and `suffix` of a component other than the server. */}}
{{- define "portolan.selector" -}}
{{- $suffix := default "" .suffix -}}
app.kubernetes.io/instance: {{ .root.Release.Name | quote }}
{{- if .root.Values.isClusterService }}
k8s-app: {{ printf "%s%s" (include "coredns.k8sapplabel" .root) $suffix | quote }}
{{- end }}
app.kubernetes.io/name: {{ printf "%s%s" (include "coredns.name" .root) $suffix | quote }}
{{- end -}}

{{/* Labels of every object. Takes `root` and `suffix`. */}}
{{- define "portolan.labels" -}}
{{ include "portolan.selector" . }}
app.kubernetes.io/managed-by: {{ .root.Release.Service | quote }}
helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name .root.Chart.Version | replace "+" "_" | quote }}
{{- if .root.Values.isClusterService }}
kubernetes.io/cluster-service: "true"
kubernetes.io/name: CoreDNS
{{- end }}
{{- end -}}

{{/*
The metadata of an object. Takes `root` and `name`, and optionally `suffix`, `labels` and `annotations` (of this object,
which replace common ones), `clusterScoped` and `namespace`.
*/}}
{{- define "portolan.metadata" -}}
{{- $common := include "portolan.labels" . | fromYaml -}}
{{- $custom := default dict .root.Values.customLabels -}}
{{- if .clusterRole -}}{{- $custom = dict -}}{{- end -}}
{{- $annotations := mergeOverwrite dict (default dict .root.Values.customAnnotations) (default dict .annotations) -}}
name: {{ .name }}
{{- if not .clusterScoped }}
namespace: {{ default .root.Release.Namespace .namespace }}
{{- end }}
labels:
  {{- mergeOverwrite dict $common (default dict .labels) $custom | toYaml | nindent 2 }}
{{- with $annotations }}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

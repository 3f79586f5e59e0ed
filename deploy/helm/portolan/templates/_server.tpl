{{/* Rejects values that would replace a working DNS by one that cannot run, and returns the mode. */}}
{{- define "portolan.mode" -}}
{{- $mode := default "central" .Values.mode -}}
{{- $image := .Values.image | default dict -}}
{{- if not $image.repository -}}
{{- fail "image.repository is not set. No image of Portolan is published: build one and push it to your registry (docs/deploy.md), then pass --set image.repository=REGISTRY/portolan" -}}
{{- end -}}
{{- if and (regexMatch "(^|/)coredns/coredns$" $image.repository) (not $image.tag) -}}
{{- fail (printf "image.repository is `%s` and image.tag is not set. These values are those of a coredns release; pass --set image.repository=REGISTRY/portolan" $image.repository) -}}
{{- end -}}
{{- if and (eq $mode "front") (not (.Values.front).upstream) -}}
{{- fail "front.upstream is not set. Set it to the cluster IP of the DNS Service that your platform manages, for example: kubectl -n kube-system get service kube-dns -o jsonpath='{.spec.clusterIP}'" -}}
{{- end -}}
{{- if and (has $mode (list "node" "both")) .Values.node.takeOver (not (include "portolan.clusterIP" .)) -}}
{{- $key := eq $mode "node" | ternary "node.clusterIP" "service.clusterIP" -}}
{{- fail (printf "%s is not set. The caches take over the cluster IP of the DNS Service on their nodes; set it, or set node.takeOver to false" $key) -}}
{{- end -}}
{{- if has $mode (list "central" "both" "every-node") -}}{{- include "portolan.refuseRoot" . -}}{{- end -}}
{{- if eq $mode "every-node" -}}{{- include "portolan.refuseEveryNode" . -}}{{- end -}}
{{- $mode -}}
{{- end -}}

{{/* Rejects a user root beside `runAsNonRoot`, which the defaults set: the kubelet would start no container. */}}
{{- define "portolan.refuseRoot" -}}
{{- $effective := mergeOverwrite (deepCopy (default dict .Values.podSecurityContext)) (default dict .Values.securityContext) -}}
{{- if and $effective.runAsNonRoot (eq (get $effective "runAsUser" | toString) "0") -}}
{{- fail "runAsUser is 0, but podSecurityContext.runAsNonRoot is true, so that no pod would start. Remove runAsUser (the server needs no root), or pass --set podSecurityContext.runAsNonRoot=false" -}}
{{- end -}}
{{- end -}}

{{/* Not empty if this release has a Deployment of the server. */}}
{{- define "portolan.hasDeployment" -}}
{{- if and .Values.deployment.enabled (include "portolan.hasService" .) -}}true{{- end -}}
{{- end -}}

{{/* Not empty if this release has the server on each node. */}}
{{- define "portolan.hasEveryNode" -}}
{{- if eq (include "portolan.mode" .) "every-node" -}}true{{- end -}}
{{- end -}}

{{/* Not empty if this release has the server, as a Deployment or on each node. */}}
{{- define "portolan.hasServer" -}}
{{- if or (include "portolan.hasDeployment" .) (include "portolan.hasEveryNode" .) -}}true{{- end -}}
{{- end -}}

{{/* Not empty if this release has the DNS Service. */}}
{{- define "portolan.hasService" -}}
{{- $mode := include "portolan.mode" . -}}
{{- if eq $mode "every-node" -}}
{{- if not .Values.everyNode.existingServiceSelector -}}true{{- end -}}
{{- else if and (has $mode (list "central" "both")) .Values.deployment.enabled -}}true{{- end -}}
{{- end -}}

{{/* Not empty if this release has a cache on each node. */}}
{{- define "portolan.hasNode" -}}
{{- if has (include "portolan.mode" .) (list "node" "both" "front") -}}true{{- end -}}
{{- end -}}

{{/* Labels that select all pods of the server. */}}
{{- define "portolan.serverSelector" -}}
{{- if and (include "portolan.hasEveryNode" .) (not (include "portolan.hasService" .)) -}}
{{- include "portolan.everyNodeSelector" . -}}
{{- else -}}
{{- include "portolan.selector" (dict "root" .) -}}
{{- end -}}
{{- end -}}

{{- define "portolan.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end -}}

{{/*
Ports of all server blocks as JSON: port → {udp, tcp, servicePort, nodePort, hostPort}. Ports of the plugin *prometheus*
have `metrics`.
*/}}
{{- define "portolan.ports" -}}
{{- $ports := dict -}}
{{- $metrics := dict -}}
{{- range .Values.servers -}}
  {{- $port := .port | default 53 | toString -}}
  {{- $entry := get $ports $port | default (dict "servicePort" (.servicePort | default $port | int)) -}}
  {{- range .zones -}}
    {{- $scheme := .scheme | default "dns://" -}}
    {{- if has $scheme (list "tls://" "grpc://" "https://") -}}
      {{- $_ := set $entry "tcp" true -}}
    {{- else if eq $scheme "dns://" -}}
      {{- $_ := set $entry "udp" true -}}
      {{- if .use_tcp -}}{{- $_ := set $entry "tcp" true -}}{{- end -}}
    {{- else if has $scheme (list "quic://" "https3://") -}}
      {{- $_ := set $entry "udp" true -}}
    {{- end -}}
  {{- end -}}
  {{- if not (or $entry.tcp $entry.udp) -}}{{- $_ := set $entry "udp" true -}}{{- end -}}
  {{- with .nodePort -}}{{- $_ := set $entry "nodePort" (int .) -}}{{- end -}}
  {{- with .hostPort -}}{{- $_ := set $entry "hostPort" (int .) -}}{{- end -}}
  {{- $_ := set $ports $port $entry -}}
  {{- range .plugins -}}
    {{- if eq .name "prometheus" -}}
      {{- $address := .parameters | default ":9153" | toString -}}
      {{- $_ := set $metrics (regexFind "[0-9]+$" $address) (dict "tcp" true "metrics" true) -}}
    {{- end -}}
  {{- end -}}
{{- end -}}
{{- mergeOverwrite $ports $metrics | toJson -}}
{{- end -}}

{{- define "portolan.containerPorts" -}}
{{- range $port, $entry := include "portolan.ports" . | fromJson -}}
{{- range $protocol := list "udp" "tcp" -}}
{{- if get $entry $protocol }}
- containerPort: {{ $port }}
  {{- with $entry.hostPort }}
  hostPort: {{ . }}
  {{- end }}
  name: {{ $protocol }}-{{ $port }}
  protocol: {{ upper $protocol }}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "portolan.servicePorts" -}}
{{- range $port, $entry := include "portolan.ports" . | fromJson -}}
{{- range $protocol := list "udp" "tcp" -}}
{{- if and (get $entry $protocol) (not $entry.metrics) }}
- name: {{ $protocol }}-{{ $port }}
  {{- with $entry.nodePort }}
  nodePort: {{ . }}
  {{- end }}
  port: {{ $entry.servicePort }}
  protocol: {{ upper $protocol }}
  targetPort: {{ $port }}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* Corefile of the Deployment. */}}
{{- define "portolan.corefile" -}}
{{- include "portolan.corefileOf" (dict "root" . "servers" .Values.servers) -}}
{{- end -}}

{{/* Corefile with these `servers`. Takes `root`. */}}
{{- define "portolan.corefileOf" -}}
{{- range $name, $directive := .root.Values.extraConfig }}
{{ $name }}{{ with $directive.parameters }} {{ . }}{{ end }}
{{- end }}
{{- range $index, $server := .servers }}
{{ include "portolan.zones" $server }} {
{{- if not $index }}{{ include "portolan.control" $.root }}{{ include "portolan.shadow" $.root }}{{ end }}
{{- range .plugins }}
    {{ .name }}{{ with .parameters }} {{ . }}{{ end }}
    {{- with .configBlock }} {
{{ . | trim | indent 8 }}
    }
    {{- end }}
{{- end }}
}
{{- end }}
{{ end -}}

{{/* Directives of the control API, which apply to the whole server; empty for its defaults. */}}
{{- define "portolan.control" -}}
{{- $control := default dict .Values.control -}}
{{- if eq (get $control "enabled" | toString) "false" }}
    control off
{{- end }}
{{- with $control.port }}
    control 127.0.0.1:{{ . }} {
        read-only
    }
{{- end }}
{{- end -}}

{{/* Comparison with the server that is replaced; empty without its address. */}}
{{- define "portolan.shadow" -}}
{{- $shadow := default dict .Values.shadow -}}
{{- with $shadow.to }}
    shadow {{ . }}
    {{- with $shadow.options }} {
        {{- range . }}
        {{ . }}
        {{- end }}
    }
    {{- end }}
{{- end }}
{{- end -}}

{{/* Zones of a server block, each with the port of the block. A zone may have its own port. */}}
{{- define "portolan.zones" -}}
{{- $port := .port -}}
{{- range $index, $zone := .zones | default (list dict) -}}
{{- $name := $zone.zone | default "." -}}
{{- if $index }} {{ end }}{{ $zone.scheme }}{{ $name }}
{{- if and $port (not (regexMatch ":[0-9]+$" $name)) }}:{{ $port }}{{ end -}}
{{- end -}}
{{- end -}}

{{/* An HTTP probe. Takes `probe` (values), `path`, `port`, and optionally `host`. */}}
{{- define "portolan.probe" -}}
httpGet:
  {{- with .host }}
  host: {{ . | quote }}
  {{- end }}
  path: {{ .path }}
  port: {{ .port }}
  scheme: HTTP
{{ omit .probe "enabled" | toYaml }}
{{- end -}}

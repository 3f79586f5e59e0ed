{{/* Cluster IP of the DNS Service in the modes `node` and `both`. */}}
{{- define "portolan.clusterIP" -}}
{{- (.Values.node).clusterIP | default (.Values.service).clusterIP | default "" -}}
{{- end -}}

{{/* Addresses that the caches serve on, separated by spaces. */}}
{{- define "portolan.localAddresses" -}}
{{- .Values.node.localIP -}}
{{- if and .Values.node.takeOver (ne (include "portolan.mode" .) "front") }} {{ include "portolan.clusterIP" . }}{{ end -}}
{{- end -}}

{{/* Template of the caches' Corefile. Portolan replaces the placeholders when it starts. In mode `front`, all names go to
the managed DNS, because only it knows the stub domains and policies of the platform. */}}
{{- define "portolan.nodeCorefile" -}}
{{- $bind := include "portolan.localAddresses" . -}}
{{- $upstream := "__PILLAR__CLUSTER__DNS__" -}}
{{- if eq (include "portolan.mode" .) "front" -}}{{- $upstream = .Values.front.upstream -}}{{- end -}}
{{ .Values.node.domain }}:53 {
    errors
    cache {
        success 9984 30
        denial 9984 5
    }
    reload
    loop
    bind {{ $bind }}
    forward . {{ $upstream }} {
        force_tcp
    }
    prometheus :9253
    health {{ contains ":" .Values.node.localIP | ternary (printf "[%s]" .Values.node.localIP) .Values.node.localIP }}:8080
}
in-addr.arpa:53 ip6.arpa:53 {
    errors
    cache 30
    reload
    loop
    bind {{ $bind }}
    forward . {{ $upstream }} {
        force_tcp
    }
    prometheus :9253
}
.:53 {
    errors
    cache 30
    reload
    loop
    bind {{ $bind }}
    {{- if eq (include "portolan.mode" .) "front" }}
    forward . {{ $upstream }} {
        force_tcp
    }
    {{- else }}
    forward . __PILLAR__UPSTREAM__SERVERS__
    {{- end }}
    prometheus :9253
}
{{ end -}}

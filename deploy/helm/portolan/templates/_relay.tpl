{{/* Not empty if this release has relays. */}}
{{- define "portolan.hasRelays" -}}
{{- if (.Values.relays).enabled -}}
{{- if not (include "portolan.hasEveryNode" .) -}}
{{- fail "relays.enabled is true, but mode is not every-node, and no server of this release would use them. Pass --set mode=every-node, or --set relays.enabled=false" -}}
{{- end -}}
true
{{- end -}}
{{- end -}}

{{- define "portolan.relayName" -}}
{{- default (printf "%s-relay" (include "coredns.fullname" .)) .Values.relays.name -}}
{{- end -}}

{{/* Name that the certificate of the relays must have. */}}
{{- define "portolan.relayHost" -}}
{{- printf "%s.%s.svc" (include "portolan.relayName" .) .Release.Namespace -}}
{{- end -}}

{{/*
Lines of *kubernetes* by which a server on a node uses the relays, as a JSON list. The kubelet sets the variables with
the cluster IP of their Service. A name would not do: the server itself answers it.
*/}}
{{- define "portolan.relayLines" -}}
{{- $variable := include "portolan.relayName" . | upper | replace "-" "_" -}}
{{- $url := printf "relays https://{$%s_SERVICE_HOST}:{$%s_SERVICE_PORT}" $variable $variable -}}
{{- $tls := printf "relay_tls /etc/portolan/relay/ca.crt %s" (include "portolan.relayHost" .) -}}
{{- $lines := list $url $tls "relay_token /var/run/secrets/portolan-relay/token" -}}
{{- if .Values.relays.only -}}{{- $lines = append $lines "relay_only" -}}{{- end -}}
{{- $lines | toJson -}}
{{- end -}}

{{/* Not empty if a server watches pods, which a relay follows only if it must. */}}
{{- define "portolan.relaysPods" -}}
{{- range .Values.servers -}}
  {{- range .plugins -}}
    {{- if and (eq .name "kubernetes") (regexMatch "(?m)^\\s*pods\\s+verified(\\s|$)" (.configBlock | default "")) -}}true{{- end -}}
  {{- end -}}
{{- end -}}
{{- end -}}

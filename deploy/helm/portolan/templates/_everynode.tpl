{{/* Rejects values that would stop or undo the DNS on every node. */}}
{{- define "portolan.refuseEveryNode" -}}
{{- if not .Values.everyNode -}}
{{- fail "everyNode is not set: these are the values of an older chart. Pass --reset-then-reuse-values in place of --reuse-values" -}}
{{- end -}}
{{- if or .Values.hpa.enabled .Values.autoscaler.enabled -}}
{{- fail "hpa.enabled or autoscaler.enabled is true, which would scale the Deployment up again after you have scaled it down. Pass --set hpa.enabled=false,autoscaler.enabled=false, and replicaCount with the number of replicas that it has now" -}}
{{- end -}}
{{- if .Values.podDisruptionBudget -}}
{{- fail "podDisruptionBudget is set. It would select pods of the DaemonSet too, for which a budget cannot be computed, so that evictions are blocked. Pass --set podDisruptionBudget=null; a drain does not evict pods of a DaemonSet" -}}
{{- end -}}
{{- with .Values.service.trafficDistribution -}}
{{- if and (ne . "PreferSameNode") (ne $.Values.everyNode.preferSameNode "never") -}}
{{- fail (printf "service.trafficDistribution is `%s`, with which pods do not ask their own node. Remove it, or keep it with --set everyNode.preferSameNode=never" .) -}}
{{- end -}}
{{- end -}}
{{- range .Values.servers -}}
{{- if and .hostPort (not $.Values.everyNode.maxUnavailable) -}}
{{- fail "a server block has hostPort, so that a second pod has no place on a node, and an update would never end. Remove it, or pass --set everyNode.maxUnavailable=1" -}}
{{- end -}}
{{- end -}}
{{- $component := get (include "portolan.everyNodeService" . | fromYaml) "app.kubernetes.io/component" -}}
{{- if and $component (ne $component "every-node") -}}
{{- fail (printf "the DNS Service selects app.kubernetes.io/component `%s`, which pods of the DaemonSet cannot have. Remove this label from the selector" $component) -}}
{{- end -}}
{{- end -}}

{{- define "portolan.everyNodeName" -}}
{{- default (printf "%s-every-node" (include "coredns.fullname" .)) .Values.everyNode.name -}}
{{- end -}}

{{/* Labels of the DaemonSet alone. The Service selects those of the next template. */}}
{{- define "portolan.everyNodeSelector" -}}
app.kubernetes.io/component: every-node
app.kubernetes.io/instance: {{ .Release.Name | quote }}
{{- end -}}

{{/* Labels that the DNS Service selects. */}}
{{- define "portolan.everyNodeService" -}}
{{- $own := .Values.service.selector | default (include "portolan.selector" (dict "root" .) | fromYaml) -}}
{{- .Values.everyNode.existingServiceSelector | default $own | toYaml -}}
{{- end -}}

{{/* Value of `trafficDistribution`; empty for none. API servers before 1.34 reject PreferSameNode. */}}
{{- define "portolan.trafficDistribution" -}}
{{- $given := .Values.service.trafficDistribution | default "" -}}
{{- if include "portolan.hasEveryNode" . -}}
  {{- $mode := .Values.everyNode.preferSameNode -}}
  {{- $isKnown := semverCompare ">=1.34.0-0" .Capabilities.KubeVersion.Version -}}
  {{- if or (eq $mode "always") (and (eq $mode "auto") (or $isKnown $given)) -}}
    {{- $given = "PreferSameNode" -}}
  {{- end -}}
{{- end -}}
{{- $given -}}
{{- end -}}

{{/*
`servers` for the server on every node, as JSON. It keeps every line that you wrote, and adds what a server on a node
needs, unless the block has the property already:
  kubernetes  a snapshot, from which a restarted server answers at once, and the relays of this release
  cache       expired answers while the upstreams do not answer, and no copies of cluster names, which would be old
  health      `lameduck` that is longer than the readiness probe needs to fail
  nsid        the name of the pod in responses, by which `portolan doctor` counts who answers
*/}}
{{- define "portolan.everyNodeServers" -}}
{{- $servers := list -}}
{{- range $index, $server := deepCopy .Values.servers -}}
  {{- $zones := list -}}
  {{- $names := list -}}
  {{- range .plugins -}}
    {{- $names = append $names .name -}}
    {{- if eq .name "kubernetes" -}}
      {{- range $zone := .parameters | default "" | toString | splitList " " -}}
        {{- if and $zone (not (hasSuffix ".arpa" (trimSuffix "." $zone))) -}}{{- $zones = append $zones $zone -}}{{- end -}}
      {{- end -}}
    {{- end -}}
  {{- end -}}
  {{- $plugins := list -}}
  {{- range .plugins -}}
    {{- $_ := set . "configBlock" (include "portolan.everyNodeBlock" (dict "root" $ "plugin" . "index" $index "zones" (join " " $zones))) -}}
    {{- if and (eq .name "kubernetes") (not (has "nsid" $names)) -}}{{- $plugins = append $plugins (dict "name" "nsid") -}}{{- end -}}
    {{- $plugins = append $plugins . -}}
  {{- end -}}
  {{- $servers = append $servers (set $server "plugins" $plugins) -}}
{{- end -}}
{{- dict "servers" $servers | toJson -}}
{{- end -}}

{{/* Lines in the block of a plugin. Takes `root`, `plugin`, `index` of its server block, and `zones` of the cluster. */}}
{{- define "portolan.everyNodeBlock" -}}
{{- $lines := .plugin.configBlock | default "" | trim -}}
{{- $more := list -}}
{{- if eq .plugin.name "kubernetes" -}}
  {{- if not (regexMatch "(?m)^\\s*snapshot\\s" $lines) -}}
    {{- $more = append $more (printf "snapshot /var/lib/portolan/index-%d" .index) -}}
  {{- end -}}
  {{- if and (include "portolan.hasRelays" .root) (not (regexMatch "(?m)^\\s*relays\\s" $lines)) -}}
    {{- $more = concat $more (include "portolan.relayLines" .root | fromJsonArray) -}}
  {{- end -}}
{{- else if eq .plugin.name "cache" -}}
  {{- if not (regexMatch "(?m)^\\s*serve_stale(\\s|$)" $lines) -}}{{- $more = append $more "serve_stale 1h verify" -}}{{- end -}}
  {{- if and .zones (not (regexMatch "(?m)^\\s*disable\\s" $lines)) -}}
    {{- $more = concat $more (list (printf "disable success %s" .zones) (printf "disable denial %s" .zones)) -}}
  {{- end -}}
{{- else if eq .plugin.name "health" -}}
  {{- if or (eq $lines "lameduck 10s") (not (contains "lameduck" $lines)) -}}
    {{- $lines = eq $lines "lameduck 10s" | ternary "" $lines -}}
    {{- $more = append $more "lameduck 12s" -}}
  {{- end -}}
{{- end -}}
{{- concat (list $lines) $more | compact | join "\n" -}}
{{- end -}}

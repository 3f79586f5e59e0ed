# Print an optspec for argparse to handle cmd's options that are independent of any subcommand.
function __fish_portolan_global_optspecs
    string join \n conf= p/dns.port= pidfile= log-format= quiet plugins version h/help
end

function __fish_portolan_needs_command
    # Figure out if the current invocation already has a command.
    set -l cmd (commandline -opc)
    set -e cmd[1]
    argparse -s (__fish_portolan_global_optspecs) -- $cmd 2>/dev/null
    or return
    if set -q argv[1]
        # Also print the command, so this can be used to figure out what it is.
        echo $argv[1]
        return 1
    end
    return 0
end

function __fish_portolan_using_subcommand
    set -l cmd (__fish_portolan_needs_command)
    test -z "$cmd"
    and return 1
    contains -- $cmd[1] $argv
end

complete -c portolan -n "__fish_portolan_needs_command" -l conf -d 'The Corefile; `stdin` reads standard input. Without it: `Corefile` here, or a built-in one' -r -F
complete -c portolan -n "__fish_portolan_needs_command" -s p -l dns.port -d 'The port for keys of the Corefile that have none' -r
complete -c portolan -n "__fish_portolan_needs_command" -l pidfile -d 'Write the process id to this file, and remove it at the end' -r -F
complete -c portolan -n "__fish_portolan_needs_command" -l log-format -d 'Form of the log: `text`, as CoreDNS writes it, or `json`, one object per line' -r -f -a "text\t''
json\t''"
complete -c portolan -n "__fish_portolan_needs_command" -l quiet -d 'Say nothing about zones and version at the start'
complete -c portolan -n "__fish_portolan_needs_command" -l plugins -d 'Print the directives of this build and end'
complete -c portolan -n "__fish_portolan_needs_command" -l version -d 'Print the version and end'
complete -c portolan -n "__fish_portolan_needs_command" -s h -l help -d 'Print help'
complete -c portolan -n "__fish_portolan_needs_command" -f -a "check" -d 'Check a Corefile for errors and likely mistakes'
complete -c portolan -n "__fish_portolan_needs_command" -f -a "conformance" -d 'Checks a DNS server, any, against the Kubernetes DNS specification'
complete -c portolan -n "__fish_portolan_needs_command" -f -a "migrate" -d 'Makes a Corefile for this server of what a cluster\'s DNS is told today'
complete -c portolan -n "__fish_portolan_needs_command" -f -a "kube-dns" -d 'Is the kube-dns pod: takes the flags of its containers and its ConfigMap'
complete -c portolan -n "__fish_portolan_needs_command" -f -a "node" -d 'Is the cache of a node, NodeLocal DNSCache: takes the flags and the template of node-cache'
complete -c portolan -n "__fish_portolan_needs_command" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c portolan -n "__fish_portolan_using_subcommand check" -l explain -d 'Say what a code means, such as chain/never-asked, and end' -r
complete -c portolan -n "__fish_portolan_using_subcommand check" -l json -d 'Say what is wrong as one JSON document'
complete -c portolan -n "__fish_portolan_using_subcommand check" -l sarif -d 'Say what is wrong as SARIF 2.1.0'
complete -c portolan -n "__fish_portolan_using_subcommand check" -l files -d 'Read the files that it names too (zones, keys, certificates), as the start would; ask nobody'
complete -c portolan -n "__fish_portolan_using_subcommand check" -l strict -d 'Treat warnings as errors'
complete -c portolan -n "__fish_portolan_using_subcommand check" -l rbac -d 'Print the ClusterRole or the Roles that it needs of the API server'
complete -c portolan -n "__fish_portolan_using_subcommand check" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c portolan -n "__fish_portolan_using_subcommand conformance" -l server -d 'The server; without it the first one of /etc/resolv.conf' -r
complete -c portolan -n "__fish_portolan_using_subcommand conformance" -l zone -d 'The zone of the cluster' -r
complete -c portolan -n "__fish_portolan_using_subcommand conformance" -l kubeconfig -d 'Create the objects in the cluster of this kubeconfig' -r -F
complete -c portolan -n "__fish_portolan_using_subcommand conformance" -l context -d 'A context of the kubeconfig other than its current one' -r
complete -c portolan -n "__fish_portolan_using_subcommand conformance" -l manifests -d 'Write the objects into this file, which the server reads, and change them there' -r -F
complete -c portolan -n "__fish_portolan_using_subcommand conformance" -l namespace -d 'The namespace of the objects; of a scratch namespace how it begins' -r
complete -c portolan -n "__fish_portolan_using_subcommand conformance" -l filter -d 'Make only checks with this text in their name or in what they say' -r
complete -c portolan -n "__fish_portolan_using_subcommand conformance" -l no-create -d 'Create nothing: the server has what --print-manifests prints'
complete -c portolan -n "__fish_portolan_using_subcommand conformance" -l print-manifests -d 'Print the objects as manifests and end'
complete -c portolan -n "__fish_portolan_using_subcommand conformance" -l json -d 'Say what came out as JSON'
complete -c portolan -n "__fish_portolan_using_subcommand conformance" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c portolan -n "__fish_portolan_using_subcommand migrate" -l from -d 'Also name what has changed since this version of CoreDNS' -r
complete -c portolan -n "__fish_portolan_using_subcommand migrate" -l check -d 'Compare the answers of these two servers: addresses or names of hosts' -r
complete -c portolan -n "__fish_portolan_using_subcommand migrate" -l zone -d 'The zone of the cluster, for questions about Services' -r
complete -c portolan -n "__fish_portolan_using_subcommand migrate" -l defaults -d 'Add what newer installations have: ready, loop, lameduck, max_concurrent'
complete -c portolan -n "__fish_portolan_using_subcommand migrate" -l json -d 'Print the Corefile and the notes, or the comparison, as one JSON object'
complete -c portolan -n "__fish_portolan_using_subcommand migrate" -l ttl -d 'With --check, compare times to live too; those of a cache count down'
complete -c portolan -n "__fish_portolan_using_subcommand migrate" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c portolan -n "__fish_portolan_using_subcommand kube-dns" -l domain -d 'The zone of the cluster (cluster.local)' -r
complete -c portolan -n "__fish_portolan_using_subcommand kube-dns" -l dns-bind-address -d 'The address to listen on (all)' -r
complete -c portolan -n "__fish_portolan_using_subcommand kube-dns" -l dns-port -d 'The port to listen on (53)' -r
complete -c portolan -n "__fish_portolan_using_subcommand kube-dns" -l healthz-port -d 'The port of /readiness and /cache (8081)' -r
complete -c portolan -n "__fish_portolan_using_subcommand kube-dns" -l kubecfg-file -d 'A kubeconfig file (that of the pod\'s service account)' -r
complete -c portolan -n "__fish_portolan_using_subcommand kube-dns" -l kube-master-url -d 'The API server, without credentials; environment variables in it are replaced' -r
complete -c portolan -n "__fish_portolan_using_subcommand kube-dns" -l config-dir -d 'A directory with the keys of the ConfigMap as files' -r
complete -c portolan -n "__fish_portolan_using_subcommand kube-dns" -l config-map -d 'The ConfigMap, watched at the API server' -r
complete -c portolan -n "__fish_portolan_using_subcommand kube-dns" -l config-map-namespace -d 'Its namespace (kube-system)' -r
complete -c portolan -n "__fish_portolan_using_subcommand kube-dns" -l config-period -d 'How often the directory is looked at; never less often than four times a second' -r
complete -c portolan -n "__fish_portolan_using_subcommand kube-dns" -l federations -d 'Federations, where there is neither a directory nor a ConfigMap' -r
complete -c portolan -n "__fish_portolan_using_subcommand kube-dns" -l nameservers -d 'Name servers for all names outside, where there is neither a directory nor a ConfigMap (those of /etc/resolv.conf)' -r
complete -c portolan -n "__fish_portolan_using_subcommand kube-dns" -l initial-sync-timeout -d 'Accepted; the start does not wait: until the cluster is known its names are SERVFAIL and /readiness says no' -r
complete -c portolan -n "__fish_portolan_using_subcommand kube-dns" -l configDir -d 'A directory with the keys of the ConfigMap as files; as --config-dir' -r
complete -c portolan -n "__fish_portolan_using_subcommand kube-dns" -l kubednsServer -d 'Who knows the names of the cluster where name servers are named by them (this server)' -r
complete -c portolan -n "__fish_portolan_using_subcommand kube-dns" -l dnsmasqExec -d 'Accepted; this server; no other program is run' -r
complete -c portolan -n "__fish_portolan_using_subcommand kube-dns" -l syncInterval -d 'Accepted; the directory is looked at four times a second' -r
complete -c portolan -n "__fish_portolan_using_subcommand kube-dns" -l logInterval -d 'Accepted; the metrics kubedns_dnsmasq_*' -r
complete -c portolan -n "__fish_portolan_using_subcommand kube-dns" -l probe -d 'Asks a server again and again; may be repeated' -r
complete -c portolan -n "__fish_portolan_using_subcommand kube-dns" -l prometheus-addr -d 'The address of metrics and health checks (all)' -r
complete -c portolan -n "__fish_portolan_using_subcommand kube-dns" -l prometheus-port -d 'Their port (10054)' -r
complete -c portolan -n "__fish_portolan_using_subcommand kube-dns" -l prometheus-path -d 'The path of the metrics (/metrics)' -r
complete -c portolan -n "__fish_portolan_using_subcommand kube-dns" -l prometheus-namespace -d 'How the names of the sidecar\'s metrics begin (kubedns)' -r
complete -c portolan -n "__fish_portolan_using_subcommand kube-dns" -l dnsmasq-addr -d 'Where dnsmasq is, if it is another process (this server)' -r
complete -c portolan -n "__fish_portolan_using_subcommand kube-dns" -l dnsmasq-port -d 'Its port (53)' -r
complete -c portolan -n "__fish_portolan_using_subcommand kube-dns" -l dnsmasq-poll-interval-ms -d 'How often it is asked for its statistics (5000)' -r
complete -c portolan -n "__fish_portolan_using_subcommand kube-dns" -l v -d 'Accepted; the log is standard output, a line an event' -r
complete -c portolan -n "__fish_portolan_using_subcommand kube-dns" -l vmodule -d 'Accepted; the log is standard output, a line an event' -r
complete -c portolan -n "__fish_portolan_using_subcommand kube-dns" -l stderrthreshold -d 'Accepted; the log is standard output, a line an event' -r
complete -c portolan -n "__fish_portolan_using_subcommand kube-dns" -l log-dir -d 'Accepted; the log is standard output, a line an event' -r
complete -c portolan -n "__fish_portolan_using_subcommand kube-dns" -l log-file -d 'Accepted; the log is standard output, a line an event' -r
complete -c portolan -n "__fish_portolan_using_subcommand kube-dns" -l log-file-max-size -d 'Accepted; the log is standard output, a line an event' -r
complete -c portolan -n "__fish_portolan_using_subcommand kube-dns" -l log-backtrace-at -d 'Accepted; the log is standard output, a line an event' -r
complete -c portolan -n "__fish_portolan_using_subcommand kube-dns" -l log-flush-frequency -d 'Accepted; the log is standard output, a line an event' -r
complete -c portolan -n "__fish_portolan_using_subcommand kube-dns" -l profiling -d 'Where the process spends its time, for pprof: localhost:6060/debug/pprof/'
complete -c portolan -n "__fish_portolan_using_subcommand kube-dns" -l version -d 'Print the version and end'
complete -c portolan -n "__fish_portolan_using_subcommand kube-dns" -l restartDnsmasq -d 'Accepted; a changed ConfigMap is always taken up, without a restart and with what is cached'
complete -c portolan -n "__fish_portolan_using_subcommand kube-dns" -l logtostderr -d 'Accepted; the log is standard output, a line an event'
complete -c portolan -n "__fish_portolan_using_subcommand kube-dns" -l alsologtostderr -d 'Accepted; the log is standard output, a line an event'
complete -c portolan -n "__fish_portolan_using_subcommand kube-dns" -l add-dir-header -d 'Accepted; the log is standard output, a line an event'
complete -c portolan -n "__fish_portolan_using_subcommand kube-dns" -l one-output -d 'Accepted; the log is standard output, a line an event'
complete -c portolan -n "__fish_portolan_using_subcommand kube-dns" -l skip-headers -d 'Accepted; the log is standard output, a line an event'
complete -c portolan -n "__fish_portolan_using_subcommand kube-dns" -l skip-log-headers -d 'Accepted; the log is standard output, a line an event'
complete -c portolan -n "__fish_portolan_using_subcommand kube-dns" -l print-corefile -d 'Print the Corefile that would be served and end'
complete -c portolan -n "__fish_portolan_using_subcommand kube-dns" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c portolan -n "__fish_portolan_using_subcommand node" -l localip -d 'The addresses to serve on, all of one family; must be given' -r
complete -c portolan -n "__fish_portolan_using_subcommand node" -l basecorefile -d 'The template of the Corefile (/etc/coredns/Corefile.base)' -r
complete -c portolan -n "__fish_portolan_using_subcommand node" -l kubednscm -d 'The ConfigMap of kube-dns as a directory (/etc/kube-dns, if there is one)' -r
complete -c portolan -n "__fish_portolan_using_subcommand node" -l upstreamsvc -d 'The Service that is asked about names of the cluster (kube-dns)' -r
complete -c portolan -n "__fish_portolan_using_subcommand node" -l interfacename -d 'Its name (nodelocaldns)' -r
complete -c portolan -n "__fish_portolan_using_subcommand node" -l syncinterval -d 'How often interface and rules are looked at; never less often than each second' -r
complete -c portolan -n "__fish_portolan_using_subcommand node" -l metrics-listen-address -d 'Where the metrics of the node\'s set-up are (0.0.0.0:9353)' -r
complete -c portolan -n "__fish_portolan_using_subcommand node" -l health-port -d 'The port of the health check, kept out of connection tracking too (8080)' -r
complete -c portolan -n "__fish_portolan_using_subcommand node" -l dns.port -d 'The port of DNS (53)' -r
complete -c portolan -n "__fish_portolan_using_subcommand node" -l pidfile -d 'Write the process id to this file, and remove it at the end' -r
complete -c portolan -n "__fish_portolan_using_subcommand node" -l domain -d 'What __PILLAR__DNS__DOMAIN__ stands for, where it still stands (cluster.local)' -r
complete -c portolan -n "__fish_portolan_using_subcommand node" -l interfacekind -d 'tun, dummy, or auto: tun where that is possible (auto)' -r
complete -c portolan -n "__fish_portolan_using_subcommand node" -l rules -d 'nftables, iptables, or auto: nftables where the kernel has it (auto)' -r
complete -c portolan -n "__fish_portolan_using_subcommand node" -l conf -d 'Accepted; the Corefile is made in memory from --basecorefile, and --print-corefile shows it' -r
complete -c portolan -n "__fish_portolan_using_subcommand node" -l corefile -d 'Accepted; the Corefile is made in memory from --basecorefile, and --print-corefile shows it' -r
complete -c portolan -n "__fish_portolan_using_subcommand node" -l v -d 'Accepted; the log is standard output, a line an event' -r
complete -c portolan -n "__fish_portolan_using_subcommand node" -l setupinterface -d 'Make an interface with the addresses (true)'
complete -c portolan -n "__fish_portolan_using_subcommand node" -l setupiptables -d 'Set rules that keep DNS on the node out of connection tracking (true)'
complete -c portolan -n "__fish_portolan_using_subcommand node" -l skipteardown -d 'Leave interface and rules at the end (false)'
complete -c portolan -n "__fish_portolan_using_subcommand node" -l quiet -d 'Say nothing about zones and version at the start'
complete -c portolan -n "__fish_portolan_using_subcommand node" -l version -d 'Print the version and end'
complete -c portolan -n "__fish_portolan_using_subcommand node" -l print-corefile -d 'Print the Corefile that would be served and end'
complete -c portolan -n "__fish_portolan_using_subcommand node" -l reloadwithsignal -d 'Accepted; what changes is taken up within a second, without a signal and with what is cached'
complete -c portolan -n "__fish_portolan_using_subcommand node" -l plugins -d 'Accepted; `portolan -plugins` lists them'
complete -c portolan -n "__fish_portolan_using_subcommand node" -l logtostderr -d 'Accepted; the log is standard output, a line an event'
complete -c portolan -n "__fish_portolan_using_subcommand node" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c portolan -n "__fish_portolan_using_subcommand help; and not __fish_seen_subcommand_from check conformance migrate kube-dns node help" -f -a "check" -d 'Check a Corefile for errors and likely mistakes'
complete -c portolan -n "__fish_portolan_using_subcommand help; and not __fish_seen_subcommand_from check conformance migrate kube-dns node help" -f -a "conformance" -d 'Checks a DNS server, any, against the Kubernetes DNS specification'
complete -c portolan -n "__fish_portolan_using_subcommand help; and not __fish_seen_subcommand_from check conformance migrate kube-dns node help" -f -a "migrate" -d 'Makes a Corefile for this server of what a cluster\'s DNS is told today'
complete -c portolan -n "__fish_portolan_using_subcommand help; and not __fish_seen_subcommand_from check conformance migrate kube-dns node help" -f -a "kube-dns" -d 'Is the kube-dns pod: takes the flags of its containers and its ConfigMap'
complete -c portolan -n "__fish_portolan_using_subcommand help; and not __fish_seen_subcommand_from check conformance migrate kube-dns node help" -f -a "node" -d 'Is the cache of a node, NodeLocal DNSCache: takes the flags and the template of node-cache'
complete -c portolan -n "__fish_portolan_using_subcommand help; and not __fish_seen_subcommand_from check conformance migrate kube-dns node help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'

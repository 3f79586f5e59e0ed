# Print an optspec for argparse to handle cmd's options that are independent of any subcommand.
function __fish_portolan_global_optspecs
    string join \n conf= p/dns-port= pidfile= log-format= quiet plugins version h/help
end

function __fish_portolan_needs_command
    # Figure out if the current invocation already has a command.
    set -l cmd (commandline -opc)
    set -e cmd[1]
    set cmd (string replace -r -- '^-(conf|dns\.port|log-format|pidfile|plugins|quiet|version|help)(=|$)' '--$1$2' $cmd)
    set cmd (string replace -- --dns.port --dns-port $cmd)
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

complete -c portolan -n "__fish_portolan_needs_command" -l conf -d 'Corefile to load; `stdin` reads standard input [default: ./Corefile, or a built-in one]' -r -F
complete -c portolan -n "__fish_portolan_needs_command" -s p -l dns.port -d 'Port for server blocks without one' -r
complete -c portolan -n "__fish_portolan_needs_command" -l pidfile -d 'Write the process ID to this file and remove the file on exit' -r -F
complete -c portolan -n "__fish_portolan_needs_command" -l log-format -d 'Log format: `text`, as CoreDNS writes it, or `json`, one object per line' -r -f -a "text\t''
json\t''"
complete -c portolan -n "__fish_portolan_needs_command" -o conf -d 'Corefile to load; `stdin` reads standard input [default: ./Corefile, or a built-in one]' -r -F
complete -c portolan -n "__fish_portolan_needs_command" -o dns.port -d 'Port for server blocks without one' -r
complete -c portolan -n "__fish_portolan_needs_command" -o pidfile -d 'Write the process ID to this file and remove the file on exit' -r -F
complete -c portolan -n "__fish_portolan_needs_command" -o log-format -d 'Log format: `text`, as CoreDNS writes it, or `json`, one object per line' -r -f -a "text\t''
json\t''"
complete -c portolan -n "__fish_portolan_needs_command" -l quiet -d 'Do not print zones and version at startup'
complete -c portolan -n "__fish_portolan_needs_command" -l plugins -d 'Print the directives of this build and exit'
complete -c portolan -n "__fish_portolan_needs_command" -l version -d 'Print the version and exit'
complete -c portolan -n "__fish_portolan_needs_command" -o quiet -d 'Do not print zones and version at startup'
complete -c portolan -n "__fish_portolan_needs_command" -o plugins -d 'Print the directives of this build and exit'
complete -c portolan -n "__fish_portolan_needs_command" -o version -d 'Print the version and exit'
complete -c portolan -n "__fish_portolan_needs_command" -s h -l help -d 'Print help'
complete -c portolan -n "__fish_portolan_needs_command" -f -a "check" -d 'Check a Corefile for errors and likely mistakes'
complete -c portolan -n "__fish_portolan_needs_command" -f -a "conformance" -d 'Test any DNS server against the Kubernetes DNS specification'
complete -c portolan -n "__fish_portolan_needs_command" -f -a "migrate" -d 'Convert an existing cluster DNS configuration to a Corefile'
complete -c portolan -n "__fish_portolan_needs_command" -f -a "status" -d 'Show the state of the running server on one screen'
complete -c portolan -n "__fish_portolan_needs_command" -f -a "ready" -d 'Check if this server is ready, for an exec probe'
complete -c portolan -n "__fish_portolan_needs_command" -f -a "explain" -d 'Explain the answer to a query: which names a pod asks for, and which plugin answers why'
complete -c portolan -n "__fish_portolan_needs_command" -f -a "cache" -d 'Look into the cache of the running server'
complete -c portolan -n "__fish_portolan_needs_command" -f -a "reload" -d 'Reload the Corefile and wait for the outcome'
complete -c portolan -n "__fish_portolan_needs_command" -f -a "loglevel" -d 'Change the log level of a plugin for some time'
complete -c portolan -n "__fish_portolan_needs_command" -f -a "requests" -d 'Show the queries that wait for an upstream, oldest first'
complete -c portolan -n "__fish_portolan_needs_command" -f -a "shadow" -d 'Compare the running server with the DNS server that it replaces (directive shadow)'
complete -c portolan -n "__fish_portolan_needs_command" -f -a "tail" -d 'Show queries and their answers while they happen, or the last failures'
complete -c portolan -n "__fish_portolan_needs_command" -f -a "top" -d 'Show which pods, namespaces, names or upstreams cause most queries'
complete -c portolan -n "__fish_portolan_needs_command" -f -a "report" -d 'Write an archive for a bug report, without secrets'
complete -c portolan -n "__fish_portolan_needs_command" -f -a "doctor" -d 'Find what is wrong with the DNS of the cluster, and what to do about it'
complete -c portolan -n "__fish_portolan_needs_command" -f -a "completions" -d 'Print the completion script of a shell'
complete -c portolan -n "__fish_portolan_needs_command" -f -a "man" -d 'Print the man page of the program or of a subcommand, in roff'
complete -c portolan -n "__fish_portolan_needs_command" -f -a "node" -d 'Replace NodeLocal DNSCache on a node, with the flags and the template of node-cache'
complete -c portolan -n "__fish_portolan_needs_command" -f -a "kube-dns" -d 'Replace the kube-dns pod, with the flags of its containers and its ConfigMap'
complete -c portolan -n "__fish_portolan_needs_command" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c portolan -n "__fish_portolan_using_subcommand check" -l for -d 'Check for `coredns` or `coredns@VERSION` instead of this server; CoreDNS 1.11 to 1.15' -r
complete -c portolan -n "__fish_portolan_using_subcommand check" -l explain -d 'Explain a diagnostic code, such as chain/never-asked, and exit' -r
complete -c portolan -n "__fish_portolan_using_subcommand check" -l json -d 'Print the diagnostics as one JSON document'
complete -c portolan -n "__fish_portolan_using_subcommand check" -l sarif -d 'Print the diagnostics as SARIF 2.1.0'
complete -c portolan -n "__fish_portolan_using_subcommand check" -l files -d 'Also read the files that the Corefile names (zones, keys, certificates), as at startup'
complete -c portolan -n "__fish_portolan_using_subcommand check" -l strict -d 'Treat warnings as errors'
complete -c portolan -n "__fish_portolan_using_subcommand check" -l rbac -d 'Print the ClusterRole or Roles that the Corefile needs'
complete -c portolan -n "__fish_portolan_using_subcommand check" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c portolan -n "__fish_portolan_using_subcommand conformance" -l server -d 'Server to test [default: the first name server in /etc/resolv.conf]' -r
complete -c portolan -n "__fish_portolan_using_subcommand conformance" -l zone -d 'Cluster domain' -r
complete -c portolan -n "__fish_portolan_using_subcommand conformance" -l kubeconfig -d 'Create the objects in the cluster of this kubeconfig' -r -F
complete -c portolan -n "__fish_portolan_using_subcommand conformance" -l context -d 'Context of the kubeconfig [default: its current context]' -r
complete -c portolan -n "__fish_portolan_using_subcommand conformance" -l manifests -d 'Write the objects to this file, which the server under test reads' -r -F
complete -c portolan -n "__fish_portolan_using_subcommand conformance" -l namespace -d 'Namespace of the objects, or name prefix of the temporary namespace' -r
complete -c portolan -n "__fish_portolan_using_subcommand conformance" -l filter -d 'Run only checks with this text in their name or description' -r
complete -c portolan -n "__fish_portolan_using_subcommand conformance" -l no-create -d 'Create no objects: the cluster already has those of --print-manifests'
complete -c portolan -n "__fish_portolan_using_subcommand conformance" -l print-manifests -d 'Print the objects as manifests and exit'
complete -c portolan -n "__fish_portolan_using_subcommand conformance" -l json -d 'Print the results as JSON'
complete -c portolan -n "__fish_portolan_using_subcommand conformance" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c portolan -n "__fish_portolan_using_subcommand migrate" -l from -d 'Also list behaviour that changed since this version of CoreDNS' -r
complete -c portolan -n "__fish_portolan_using_subcommand migrate" -l check -d 'Compare the answers of these two servers, given as addresses or host names' -r
complete -c portolan -n "__fish_portolan_using_subcommand migrate" -l zone -d 'Cluster domain, for queries about Services' -r
complete -c portolan -n "__fish_portolan_using_subcommand migrate" -l defaults -d 'Add the defaults of newer installations: ready, loop, lameduck, max_concurrent'
complete -c portolan -n "__fish_portolan_using_subcommand migrate" -l json -d 'Print the Corefile and the notes, or the comparison, as one JSON object'
complete -c portolan -n "__fish_portolan_using_subcommand migrate" -l ttl -d 'With --check, also compare TTLs; the TTLs of a cache count down'
complete -c portolan -n "__fish_portolan_using_subcommand migrate" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c portolan -n "__fish_portolan_using_subcommand status" -l socket -d 'Control socket: a path, `@NAME`, or `http://` or `https://` and an address [default: of the server that runs here]' -r
complete -c portolan -n "__fish_portolan_using_subcommand status" -l cert -r -F
complete -c portolan -n "__fish_portolan_using_subcommand status" -l key -r -F
complete -c portolan -n "__fish_portolan_using_subcommand status" -l ca -r -F
complete -c portolan -n "__fish_portolan_using_subcommand status" -l all -d 'Ask every Pod behind a Service with `kubectl exec` [default without a value: kube-system/kube-dns]' -r
complete -c portolan -n "__fish_portolan_using_subcommand status" -l context -d 'Context of the kubeconfig, for --all [default: its current context]' -r
complete -c portolan -n "__fish_portolan_using_subcommand status" -l wait -d 'Wait at most this long, such as `60s`, until there is no problem' -r
complete -c portolan -n "__fish_portolan_using_subcommand status" -l json -d 'Print the response of the server as JSON'
complete -c portolan -n "__fish_portolan_using_subcommand status" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c portolan -n "__fish_portolan_using_subcommand ready" -l socket -d 'Control socket: a path, `@NAME`, or `http://` or `https://` and an address [default: of the server that runs here]' -r
complete -c portolan -n "__fish_portolan_using_subcommand ready" -l cert -r -F
complete -c portolan -n "__fish_portolan_using_subcommand ready" -l key -r -F
complete -c portolan -n "__fish_portolan_using_subcommand ready" -l ca -r -F
complete -c portolan -n "__fish_portolan_using_subcommand ready" -l json -d 'Print the response of the server as JSON'
complete -c portolan -n "__fish_portolan_using_subcommand ready" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c portolan -n "__fish_portolan_using_subcommand explain" -l socket -d 'Control socket: a path, `@NAME`, or `http://` or `https://` and an address [default: of the server that runs here]' -r
complete -c portolan -n "__fish_portolan_using_subcommand explain" -l cert -r -F
complete -c portolan -n "__fish_portolan_using_subcommand explain" -l key -r -F
complete -c portolan -n "__fish_portolan_using_subcommand explain" -l ca -r -F
complete -c portolan -n "__fish_portolan_using_subcommand explain" -l from -d 'Client: NAMESPACE/POD or an IP address' -r
complete -c portolan -n "__fish_portolan_using_subcommand explain" -l server -d 'Listener such as dns://:53 [default: the one on port 53, else the first one over UDP and TCP]' -r
complete -c portolan -n "__fish_portolan_using_subcommand explain" -l conf -d 'Corefile to explain from, without a running server' -r -F
complete -c portolan -n "__fish_portolan_using_subcommand explain" -l manifests -d 'Manifests of the cluster, for --conf: a file or a directory' -r -F
complete -c portolan -n "__fish_portolan_using_subcommand explain" -l format -d 'Format of the output; mermaid makes a flowchart [default: text]' -r -f -a "text\t''
json\t''
mermaid\t''"
complete -c portolan -n "__fish_portolan_using_subcommand explain" -l fresh -d 'Ask the server itself for what waits for an upstream, and explain again'
complete -c portolan -n "__fish_portolan_using_subcommand explain" -l json -d 'Short for --format json'
complete -c portolan -n "__fish_portolan_using_subcommand explain" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c portolan -n "__fish_portolan_using_subcommand cache; and not __fish_seen_subcommand_from get flush help" -l socket -d 'Control socket: a path, `@NAME`, or `http://` or `https://` and an address [default: of the server that runs here]' -r
complete -c portolan -n "__fish_portolan_using_subcommand cache; and not __fish_seen_subcommand_from get flush help" -l cert -r -F
complete -c portolan -n "__fish_portolan_using_subcommand cache; and not __fish_seen_subcommand_from get flush help" -l key -r -F
complete -c portolan -n "__fish_portolan_using_subcommand cache; and not __fish_seen_subcommand_from get flush help" -l ca -r -F
complete -c portolan -n "__fish_portolan_using_subcommand cache; and not __fish_seen_subcommand_from get flush help" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c portolan -n "__fish_portolan_using_subcommand cache; and not __fish_seen_subcommand_from get flush help" -f -a "get" -d 'Show the cached responses for a name'
complete -c portolan -n "__fish_portolan_using_subcommand cache; and not __fish_seen_subcommand_from get flush help" -f -a "flush" -d 'Remove cached responses'
complete -c portolan -n "__fish_portolan_using_subcommand cache; and not __fish_seen_subcommand_from get flush help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c portolan -n "__fish_portolan_using_subcommand cache; and __fish_seen_subcommand_from get" -l socket -d 'Control socket: a path, `@NAME`, or `http://` or `https://` and an address [default: of the server that runs here]' -r
complete -c portolan -n "__fish_portolan_using_subcommand cache; and __fish_seen_subcommand_from get" -l cert -r -F
complete -c portolan -n "__fish_portolan_using_subcommand cache; and __fish_seen_subcommand_from get" -l key -r -F
complete -c portolan -n "__fish_portolan_using_subcommand cache; and __fish_seen_subcommand_from get" -l ca -r -F
complete -c portolan -n "__fish_portolan_using_subcommand cache; and __fish_seen_subcommand_from get" -l json -d 'Print the response of the server as JSON'
complete -c portolan -n "__fish_portolan_using_subcommand cache; and __fish_seen_subcommand_from get" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c portolan -n "__fish_portolan_using_subcommand cache; and __fish_seen_subcommand_from flush" -l socket -d 'Control socket: a path, `@NAME`, or `http://` or `https://` and an address [default: of the server that runs here]' -r
complete -c portolan -n "__fish_portolan_using_subcommand cache; and __fish_seen_subcommand_from flush" -l cert -r -F
complete -c portolan -n "__fish_portolan_using_subcommand cache; and __fish_seen_subcommand_from flush" -l key -r -F
complete -c portolan -n "__fish_portolan_using_subcommand cache; and __fish_seen_subcommand_from flush" -l ca -r -F
complete -c portolan -n "__fish_portolan_using_subcommand cache; and __fish_seen_subcommand_from flush" -l below -d 'Domain name, with all names below it' -r
complete -c portolan -n "__fish_portolan_using_subcommand cache; and __fish_seen_subcommand_from flush" -l all -d 'All responses'
complete -c portolan -n "__fish_portolan_using_subcommand cache; and __fish_seen_subcommand_from flush" -l json -d 'Print the response of the server as JSON'
complete -c portolan -n "__fish_portolan_using_subcommand cache; and __fish_seen_subcommand_from flush" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c portolan -n "__fish_portolan_using_subcommand cache; and __fish_seen_subcommand_from help" -f -a "get" -d 'Show the cached responses for a name'
complete -c portolan -n "__fish_portolan_using_subcommand cache; and __fish_seen_subcommand_from help" -f -a "flush" -d 'Remove cached responses'
complete -c portolan -n "__fish_portolan_using_subcommand cache; and __fish_seen_subcommand_from help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c portolan -n "__fish_portolan_using_subcommand reload" -l socket -d 'Control socket: a path, `@NAME`, or `http://` or `https://` and an address [default: of the server that runs here]' -r
complete -c portolan -n "__fish_portolan_using_subcommand reload" -l cert -r -F
complete -c portolan -n "__fish_portolan_using_subcommand reload" -l key -r -F
complete -c portolan -n "__fish_portolan_using_subcommand reload" -l ca -r -F
complete -c portolan -n "__fish_portolan_using_subcommand reload" -l json -d 'Print the response of the server as JSON'
complete -c portolan -n "__fish_portolan_using_subcommand reload" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c portolan -n "__fish_portolan_using_subcommand loglevel" -l socket -d 'Control socket: a path, `@NAME`, or `http://` or `https://` and an address [default: of the server that runs here]' -r
complete -c portolan -n "__fish_portolan_using_subcommand loglevel" -l cert -r -F
complete -c portolan -n "__fish_portolan_using_subcommand loglevel" -l key -r -F
complete -c portolan -n "__fish_portolan_using_subcommand loglevel" -l ca -r -F
complete -c portolan -n "__fish_portolan_using_subcommand loglevel" -l for -d 'Time after which the usual level applies again, at most a day; `0s` ends a temporary level' -r
complete -c portolan -n "__fish_portolan_using_subcommand loglevel" -l json -d 'Print the response of the server as JSON'
complete -c portolan -n "__fish_portolan_using_subcommand loglevel" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c portolan -n "__fish_portolan_using_subcommand requests" -l socket -d 'Control socket: a path, `@NAME`, or `http://` or `https://` and an address [default: of the server that runs here]' -r
complete -c portolan -n "__fish_portolan_using_subcommand requests" -l cert -r -F
complete -c portolan -n "__fish_portolan_using_subcommand requests" -l key -r -F
complete -c portolan -n "__fish_portolan_using_subcommand requests" -l ca -r -F
complete -c portolan -n "__fish_portolan_using_subcommand requests" -l json -d 'Print the response of the server as JSON'
complete -c portolan -n "__fish_portolan_using_subcommand requests" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c portolan -n "__fish_portolan_using_subcommand shadow; and not __fish_seen_subcommand_from report help" -l socket -d 'Control socket: a path, `@NAME`, or `http://` or `https://` and an address [default: of the server that runs here]' -r
complete -c portolan -n "__fish_portolan_using_subcommand shadow; and not __fish_seen_subcommand_from report help" -l cert -r -F
complete -c portolan -n "__fish_portolan_using_subcommand shadow; and not __fish_seen_subcommand_from report help" -l key -r -F
complete -c portolan -n "__fish_portolan_using_subcommand shadow; and not __fish_seen_subcommand_from report help" -l ca -r -F
complete -c portolan -n "__fish_portolan_using_subcommand shadow; and not __fish_seen_subcommand_from report help" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c portolan -n "__fish_portolan_using_subcommand shadow; and not __fish_seen_subcommand_from report help" -f -a "report" -d 'Show how the answers differ from those of the other server'
complete -c portolan -n "__fish_portolan_using_subcommand shadow; and not __fish_seen_subcommand_from report help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c portolan -n "__fish_portolan_using_subcommand shadow; and __fish_seen_subcommand_from report" -l socket -d 'Control socket: a path, `@NAME`, or `http://` or `https://` and an address [default: of the server that runs here]' -r
complete -c portolan -n "__fish_portolan_using_subcommand shadow; and __fish_seen_subcommand_from report" -l cert -r -F
complete -c portolan -n "__fish_portolan_using_subcommand shadow; and __fish_seen_subcommand_from report" -l key -r -F
complete -c portolan -n "__fish_portolan_using_subcommand shadow; and __fish_seen_subcommand_from report" -l ca -r -F
complete -c portolan -n "__fish_portolan_using_subcommand shadow; and __fish_seen_subcommand_from report" -l json -d 'Print the response of the server as JSON'
complete -c portolan -n "__fish_portolan_using_subcommand shadow; and __fish_seen_subcommand_from report" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c portolan -n "__fish_portolan_using_subcommand shadow; and __fish_seen_subcommand_from help" -f -a "report" -d 'Show how the answers differ from those of the other server'
complete -c portolan -n "__fish_portolan_using_subcommand shadow; and __fish_seen_subcommand_from help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c portolan -n "__fish_portolan_using_subcommand tail" -l socket -d 'Control socket: a path, `@NAME`, or `http://` or `https://` and an address [default: of the server that runs here]' -r
complete -c portolan -n "__fish_portolan_using_subcommand tail" -l cert -r -F
complete -c portolan -n "__fish_portolan_using_subcommand tail" -l key -r -F
complete -c portolan -n "__fish_portolan_using_subcommand tail" -l ca -r -F
complete -c portolan -n "__fish_portolan_using_subcommand tail" -l all -d 'Ask every Pod behind a Service with `kubectl exec` [default without a value: kube-system/kube-dns]' -r
complete -c portolan -n "__fish_portolan_using_subcommand tail" -l context -d 'Context of the kubeconfig, for --all [default: its current context]' -r
complete -c portolan -n "__fish_portolan_using_subcommand tail" -l name -d 'Names, or `*.NAME` for all names below' -r
complete -c portolan -n "__fish_portolan_using_subcommand tail" -l zone -d 'Zones: the names themselves and all names below' -r
complete -c portolan -n "__fish_portolan_using_subcommand tail" -l type -d 'Record types' -r
complete -c portolan -n "__fish_portolan_using_subcommand tail" -l rcode -d 'Response codes, or `DROPPED` for no response' -r
complete -c portolan -n "__fish_portolan_using_subcommand tail" -l plugin -d 'Plugins that answered or failed' -r
complete -c portolan -n "__fish_portolan_using_subcommand tail" -l client -d 'Addresses of clients, or networks such as 10.0.0.0/8' -r
complete -c portolan -n "__fish_portolan_using_subcommand tail" -s n -l namespace -d 'Namespace of the client' -r
complete -c portolan -n "__fish_portolan_using_subcommand tail" -l pod -d 'Pod of the client, or Service that it is an endpoint of: NAMESPACE/NAME, or NAME with --namespace' -r
complete -c portolan -n "__fish_portolan_using_subcommand tail" -l slow -d 'Only queries that took at least this long, such as `10ms`' -r
complete -c portolan -n "__fish_portolan_using_subcommand tail" -l sample -d 'Show one of N queries' -r
complete -c portolan -n "__fish_portolan_using_subcommand tail" -l last -d 'Show this number of recorded failures, and end; with --follow, continue with live queries' -r
complete -c portolan -n "__fish_portolan_using_subcommand tail" -l for -d 'End after this time, at most an hour' -r
complete -c portolan -n "__fish_portolan_using_subcommand tail" -s o -l output -d 'Format of the lines' -r -f -a "line\t''
wide\t''
json\t''
logfmt\t''"
complete -c portolan -n "__fish_portolan_using_subcommand tail" -s f -l follow -d 'Continue after --last'
complete -c portolan -n "__fish_portolan_using_subcommand tail" -l json -d 'Same as `--output json`'
complete -c portolan -n "__fish_portolan_using_subcommand tail" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c portolan -n "__fish_portolan_using_subcommand top" -l socket -d 'Control socket: a path, `@NAME`, or `http://` or `https://` and an address [default: of the server that runs here]' -r
complete -c portolan -n "__fish_portolan_using_subcommand top" -l cert -r -F
complete -c portolan -n "__fish_portolan_using_subcommand top" -l key -r -F
complete -c portolan -n "__fish_portolan_using_subcommand top" -l ca -r -F
complete -c portolan -n "__fish_portolan_using_subcommand top" -l all -d 'Ask every Pod behind a Service with `kubectl exec` [default without a value: kube-system/kube-dns]' -r
complete -c portolan -n "__fish_portolan_using_subcommand top" -l context -d 'Context of the kubeconfig, for --all [default: its current context]' -r
complete -c portolan -n "__fish_portolan_using_subcommand top" -l by -d 'Grouping; `waste` shows pods with most queries without a useful answer first' -r -f -a "pod\t''
ns\t''
name\t''
zone\t''
rcode\t''
upstream\t''
waste\t''
domain\t''"
complete -c portolan -n "__fish_portolan_using_subcommand top" -l window -d 'Period that the numbers are about' -r -f -a "10s\t''
1m\t''
10m\t''"
complete -c portolan -n "__fish_portolan_using_subcommand top" -l rows -d 'Maximum number of rows [default: 20]' -r
complete -c portolan -n "__fish_portolan_using_subcommand top" -l once -d 'Print one table and end, as without a terminal'
complete -c portolan -n "__fish_portolan_using_subcommand top" -l json -d 'Print the response of the server as JSON'
complete -c portolan -n "__fish_portolan_using_subcommand top" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c portolan -n "__fish_portolan_using_subcommand report" -l socket -d 'Control socket: a path, `@NAME`, or `http://` or `https://` and an address [default: of the server that runs here]' -r
complete -c portolan -n "__fish_portolan_using_subcommand report" -l cert -r -F
complete -c portolan -n "__fish_portolan_using_subcommand report" -l key -r -F
complete -c portolan -n "__fish_portolan_using_subcommand report" -l ca -r -F
complete -c portolan -n "__fish_portolan_using_subcommand report" -s o -l output -d 'File to write, `-` for standard output [default: standard output, unless it is a terminal]' -r -F
complete -c portolan -n "__fish_portolan_using_subcommand report" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c portolan -n "__fish_portolan_using_subcommand doctor" -l socket -d 'Control socket: a path, `@NAME`, or `http://` or `https://` and an address [default: of the server that runs here]' -r
complete -c portolan -n "__fish_portolan_using_subcommand doctor" -l cert -r -F
complete -c portolan -n "__fish_portolan_using_subcommand doctor" -l key -r -F
complete -c portolan -n "__fish_portolan_using_subcommand doctor" -l ca -r -F
complete -c portolan -n "__fish_portolan_using_subcommand doctor" -l only -d 'Run the checks of an area, such as `network`, or the one with a code, such as PD-N04' -r
complete -c portolan -n "__fish_portolan_using_subcommand doctor" -l kubeconfig -d 'Use the API server of this kubeconfig [default: that of this Pod, or of $KUBECONFIG]' -r -F
complete -c portolan -n "__fish_portolan_using_subcommand doctor" -l context -d 'Context of the kubeconfig [default: its current context]' -r
complete -c portolan -n "__fish_portolan_using_subcommand doctor" -l conf -d 'Corefile [default: that of the server that runs here, or that in the ConfigMap]' -r -F
complete -c portolan -n "__fish_portolan_using_subcommand doctor" -l service -d 'DNS Service [default: the one with the usual names and labels]' -r
complete -c portolan -n "__fish_portolan_using_subcommand doctor" -l fix-text -d 'Print the findings in full, with the meaning of their checks and the fixes'
complete -c portolan -n "__fish_portolan_using_subcommand doctor" -l json -d 'Print the report as JSON'
complete -c portolan -n "__fish_portolan_using_subcommand doctor" -l sarif -d 'Print the findings as SARIF 2.1.0'
complete -c portolan -n "__fish_portolan_using_subcommand doctor" -l in-cluster -d 'Use the API server and the service account of this Pod'
complete -c portolan -n "__fish_portolan_using_subcommand doctor" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c portolan -n "__fish_portolan_using_subcommand completions" -s h -l help -d 'Print help'
complete -c portolan -n "__fish_portolan_using_subcommand man" -s h -l help -d 'Print help'
complete -c portolan -n "__fish_portolan_using_subcommand node" -l localip -d 'Addresses to serve on, of both families; required' -r
complete -c portolan -n "__fish_portolan_using_subcommand node" -l basecorefile -d 'Template of the Corefile (/etc/coredns/Corefile.base)' -r
complete -c portolan -n "__fish_portolan_using_subcommand node" -l kubednscm -d 'Directory with the ConfigMap of kube-dns (/etc/kube-dns, if it exists)' -r
complete -c portolan -n "__fish_portolan_using_subcommand node" -l upstreamsvc -d 'Service that answers queries for cluster names (kube-dns)' -r
complete -c portolan -n "__fish_portolan_using_subcommand node" -l interfacename -d 'Name of the interface (nodelocaldns)' -r
complete -c portolan -n "__fish_portolan_using_subcommand node" -l syncinterval -d 'Interval between checks of interface and rules; at most 1s' -r
complete -c portolan -n "__fish_portolan_using_subcommand node" -l metrics-listen-address -d 'Address of the metrics about the node setup (0.0.0.0:9353)' -r
complete -c portolan -n "__fish_portolan_using_subcommand node" -l health-port -d 'Port of the health check, also excluded from connection tracking (8080)' -r
complete -c portolan -n "__fish_portolan_using_subcommand node" -l dns.port -d 'DNS port (53)' -r
complete -c portolan -n "__fish_portolan_using_subcommand node" -l p -d 'DNS port, if --dns.port is not set' -r
complete -c portolan -n "__fish_portolan_using_subcommand node" -l pidfile -d 'Write the process ID to this file, and remove the file on exit' -r
complete -c portolan -n "__fish_portolan_using_subcommand node" -l domain -d 'Replacement for __PILLAR__DNS__DOMAIN__ in the template (cluster.local)' -r
complete -c portolan -n "__fish_portolan_using_subcommand node" -l interfacekind -d 'tun, dummy, or auto: tun if possible (auto)' -r
complete -c portolan -n "__fish_portolan_using_subcommand node" -l rules -d 'nftables, iptables, or auto: nftables if the kernel supports it (auto)' -r
complete -c portolan -n "__fish_portolan_using_subcommand node" -l log-format -d 'Log format: text, as CoreDNS writes it, or json, one object per line (text)' -r
complete -c portolan -n "__fish_portolan_using_subcommand node" -l conf -d 'Accepted; the Corefile is built in memory from --basecorefile; --print-corefile shows it' -r
complete -c portolan -n "__fish_portolan_using_subcommand node" -l corefile -d 'Accepted; the Corefile is built in memory from --basecorefile; --print-corefile shows it' -r
complete -c portolan -n "__fish_portolan_using_subcommand node" -l initialdelay -d 'Accepted; rules are set as soon as the cache serves' -r
complete -c portolan -n "__fish_portolan_using_subcommand node" -l v -d 'Accepted; the log is standard output, one event per line' -r
complete -c portolan -n "__fish_portolan_using_subcommand node" -l vmodule -d 'Accepted; the log is standard output, one event per line' -r
complete -c portolan -n "__fish_portolan_using_subcommand node" -l stderrthreshold -d 'Accepted; the log is standard output, one event per line' -r
complete -c portolan -n "__fish_portolan_using_subcommand node" -l log-dir -d 'Accepted; the log is standard output, one event per line' -r
complete -c portolan -n "__fish_portolan_using_subcommand node" -l log-link -d 'Accepted; the log is standard output, one event per line' -r
complete -c portolan -n "__fish_portolan_using_subcommand node" -l logbuflevel -d 'Accepted; the log is standard output, one event per line' -r
complete -c portolan -n "__fish_portolan_using_subcommand node" -l log-backtrace-at -d 'Accepted; the log is standard output, one event per line' -r
complete -c portolan -n "__fish_portolan_using_subcommand node" -o localip -d 'Addresses to serve on, of both families; required' -r
complete -c portolan -n "__fish_portolan_using_subcommand node" -o basecorefile -d 'Template of the Corefile (/etc/coredns/Corefile.base)' -r
complete -c portolan -n "__fish_portolan_using_subcommand node" -o kubednscm -d 'Directory with the ConfigMap of kube-dns (/etc/kube-dns, if it exists)' -r
complete -c portolan -n "__fish_portolan_using_subcommand node" -o upstreamsvc -d 'Service that answers queries for cluster names (kube-dns)' -r
complete -c portolan -n "__fish_portolan_using_subcommand node" -o interfacename -d 'Name of the interface (nodelocaldns)' -r
complete -c portolan -n "__fish_portolan_using_subcommand node" -o syncinterval -d 'Interval between checks of interface and rules; at most 1s' -r
complete -c portolan -n "__fish_portolan_using_subcommand node" -o metrics-listen-address -d 'Address of the metrics about the node setup (0.0.0.0:9353)' -r
complete -c portolan -n "__fish_portolan_using_subcommand node" -o health-port -d 'Port of the health check, also excluded from connection tracking (8080)' -r
complete -c portolan -n "__fish_portolan_using_subcommand node" -o dns.port -d 'DNS port (53)' -r
complete -c portolan -n "__fish_portolan_using_subcommand node" -o p -d 'DNS port, if --dns.port is not set' -r
complete -c portolan -n "__fish_portolan_using_subcommand node" -o pidfile -d 'Write the process ID to this file, and remove the file on exit' -r
complete -c portolan -n "__fish_portolan_using_subcommand node" -o domain -d 'Replacement for __PILLAR__DNS__DOMAIN__ in the template (cluster.local)' -r
complete -c portolan -n "__fish_portolan_using_subcommand node" -o interfacekind -d 'tun, dummy, or auto: tun if possible (auto)' -r
complete -c portolan -n "__fish_portolan_using_subcommand node" -o rules -d 'nftables, iptables, or auto: nftables if the kernel supports it (auto)' -r
complete -c portolan -n "__fish_portolan_using_subcommand node" -o log-format -d 'Log format: text, as CoreDNS writes it, or json, one object per line (text)' -r
complete -c portolan -n "__fish_portolan_using_subcommand node" -o conf -d 'Accepted; the Corefile is built in memory from --basecorefile; --print-corefile shows it' -r
complete -c portolan -n "__fish_portolan_using_subcommand node" -o corefile -d 'Accepted; the Corefile is built in memory from --basecorefile; --print-corefile shows it' -r
complete -c portolan -n "__fish_portolan_using_subcommand node" -o initialdelay -d 'Accepted; rules are set as soon as the cache serves' -r
complete -c portolan -n "__fish_portolan_using_subcommand node" -o v -d 'Accepted; the log is standard output, one event per line' -r
complete -c portolan -n "__fish_portolan_using_subcommand node" -o vmodule -d 'Accepted; the log is standard output, one event per line' -r
complete -c portolan -n "__fish_portolan_using_subcommand node" -o stderrthreshold -d 'Accepted; the log is standard output, one event per line' -r
complete -c portolan -n "__fish_portolan_using_subcommand node" -o log-dir -d 'Accepted; the log is standard output, one event per line' -r
complete -c portolan -n "__fish_portolan_using_subcommand node" -o log-link -d 'Accepted; the log is standard output, one event per line' -r
complete -c portolan -n "__fish_portolan_using_subcommand node" -o logbuflevel -d 'Accepted; the log is standard output, one event per line' -r
complete -c portolan -n "__fish_portolan_using_subcommand node" -o log-backtrace-at -d 'Accepted; the log is standard output, one event per line' -r
complete -c portolan -n "__fish_portolan_using_subcommand node" -l setupinterface -d 'Create an interface with the addresses (true)'
complete -c portolan -n "__fish_portolan_using_subcommand node" -l setupiptables -d 'Set rules that exclude DNS on the node from connection tracking (true)'
complete -c portolan -n "__fish_portolan_using_subcommand node" -l skipteardown -d 'Keep interface and rules on exit (false)'
complete -c portolan -n "__fish_portolan_using_subcommand node" -l quiet -d 'Do not print zones and version at startup'
complete -c portolan -n "__fish_portolan_using_subcommand node" -l version -d 'Print the version and exit'
complete -c portolan -n "__fish_portolan_using_subcommand node" -l print-corefile -d 'Print the Corefile that would be served and exit'
complete -c portolan -n "__fish_portolan_using_subcommand node" -l reloadwithsignal -d 'Accepted; changes take effect within a second, without a signal and without losing the cache'
complete -c portolan -n "__fish_portolan_using_subcommand node" -l plugins -d 'Accepted; `portolan -plugins` lists them'
complete -c portolan -n "__fish_portolan_using_subcommand node" -l setupebtables -d 'Accepted; the rules match bridged packets too if the kernel passes them to its IP layer'
complete -c portolan -n "__fish_portolan_using_subcommand node" -l logtostderr -d 'Accepted; the log is standard output, one event per line'
complete -c portolan -n "__fish_portolan_using_subcommand node" -l alsologtostderr -d 'Accepted; the log is standard output, one event per line'
complete -c portolan -n "__fish_portolan_using_subcommand node" -o setupinterface -d 'Create an interface with the addresses (true)'
complete -c portolan -n "__fish_portolan_using_subcommand node" -o setupiptables -d 'Set rules that exclude DNS on the node from connection tracking (true)'
complete -c portolan -n "__fish_portolan_using_subcommand node" -o skipteardown -d 'Keep interface and rules on exit (false)'
complete -c portolan -n "__fish_portolan_using_subcommand node" -o quiet -d 'Do not print zones and version at startup'
complete -c portolan -n "__fish_portolan_using_subcommand node" -o version -d 'Print the version and exit'
complete -c portolan -n "__fish_portolan_using_subcommand node" -o print-corefile -d 'Print the Corefile that would be served and exit'
complete -c portolan -n "__fish_portolan_using_subcommand node" -o reloadwithsignal -d 'Accepted; changes take effect within a second, without a signal and without losing the cache'
complete -c portolan -n "__fish_portolan_using_subcommand node" -o plugins -d 'Accepted; `portolan -plugins` lists them'
complete -c portolan -n "__fish_portolan_using_subcommand node" -o setupebtables -d 'Accepted; the rules match bridged packets too if the kernel passes them to its IP layer'
complete -c portolan -n "__fish_portolan_using_subcommand node" -o logtostderr -d 'Accepted; the log is standard output, one event per line'
complete -c portolan -n "__fish_portolan_using_subcommand node" -o alsologtostderr -d 'Accepted; the log is standard output, one event per line'
complete -c portolan -n "__fish_portolan_using_subcommand node" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c portolan -n "__fish_portolan_using_subcommand kube-dns" -l domain -d 'Cluster domain (cluster.local)' -r
complete -c portolan -n "__fish_portolan_using_subcommand kube-dns" -l dns-bind-address -d 'Listening address (all)' -r
complete -c portolan -n "__fish_portolan_using_subcommand kube-dns" -l dns-port -d 'Listening port (53)' -r
complete -c portolan -n "__fish_portolan_using_subcommand kube-dns" -l healthz-port -d 'Port of /readiness and /cache (8081)' -r
complete -c portolan -n "__fish_portolan_using_subcommand kube-dns" -l kubecfg-file -d 'Kubeconfig file (that of the service account)' -r
complete -c portolan -n "__fish_portolan_using_subcommand kube-dns" -l kube-master-url -d 'URL of the API server, without credentials; environment variables in it are expanded' -r
complete -c portolan -n "__fish_portolan_using_subcommand kube-dns" -l config-dir -d 'Directory with the keys of the ConfigMap as files' -r
complete -c portolan -n "__fish_portolan_using_subcommand kube-dns" -l config-map -d 'Name of the ConfigMap, which is watched at the API server' -r
complete -c portolan -n "__fish_portolan_using_subcommand kube-dns" -l config-map-namespace -d 'Namespace of the ConfigMap (kube-system)' -r
complete -c portolan -n "__fish_portolan_using_subcommand kube-dns" -l config-period -d 'Polling interval of the directory; at most 250ms' -r
complete -c portolan -n "__fish_portolan_using_subcommand kube-dns" -l federations -d 'Federations, used without a ConfigMap' -r
complete -c portolan -n "__fish_portolan_using_subcommand kube-dns" -l nameservers -d 'Upstreams for outside names, used without a ConfigMap (those of /etc/resolv.conf)' -r
complete -c portolan -n "__fish_portolan_using_subcommand kube-dns" -l initial-sync-timeout -d 'Accepted; the start does not wait: until the cluster data is loaded, its names get SERVFAIL and /readiness fails' -r
complete -c portolan -n "__fish_portolan_using_subcommand kube-dns" -l configDir -d 'Directory with the keys of the ConfigMap as files; same as --config-dir' -r
complete -c portolan -n "__fish_portolan_using_subcommand kube-dns" -l kubednsServer -d 'Server that resolves name servers given by a cluster name (this server)' -r
complete -c portolan -n "__fish_portolan_using_subcommand kube-dns" -l dnsmasqExec -d 'Accepted; this server replaces dnsmasq' -r
complete -c portolan -n "__fish_portolan_using_subcommand kube-dns" -l syncInterval -d 'Accepted; the directory is polled four times a second' -r
complete -c portolan -n "__fish_portolan_using_subcommand kube-dns" -l logInterval -d 'Accepted; see the metrics kubedns_dnsmasq_*' -r
complete -c portolan -n "__fish_portolan_using_subcommand kube-dns" -l probe -d 'Query a server periodically; may be repeated' -r
complete -c portolan -n "__fish_portolan_using_subcommand kube-dns" -l prometheus-addr -d 'Address of metrics and health checks (all)' -r
complete -c portolan -n "__fish_portolan_using_subcommand kube-dns" -l prometheus-port -d 'Port of metrics and health checks (10054)' -r
complete -c portolan -n "__fish_portolan_using_subcommand kube-dns" -l prometheus-path -d 'Path of the metrics (/metrics)' -r
complete -c portolan -n "__fish_portolan_using_subcommand kube-dns" -l prometheus-namespace -d 'Prefix of the sidecar\'s metric names (kubedns)' -r
complete -c portolan -n "__fish_portolan_using_subcommand kube-dns" -l dnsmasq-addr -d 'Address of dnsmasq, if it is another process (this server)' -r
complete -c portolan -n "__fish_portolan_using_subcommand kube-dns" -l dnsmasq-port -d 'Port of dnsmasq (53)' -r
complete -c portolan -n "__fish_portolan_using_subcommand kube-dns" -l dnsmasq-poll-interval-ms -d 'Interval at which dnsmasq is queried for statistics (5000)' -r
complete -c portolan -n "__fish_portolan_using_subcommand kube-dns" -l v -d 'Accepted; the log is standard output, one event per line' -r
complete -c portolan -n "__fish_portolan_using_subcommand kube-dns" -l vmodule -d 'Accepted; the log is standard output, one event per line' -r
complete -c portolan -n "__fish_portolan_using_subcommand kube-dns" -l stderrthreshold -d 'Accepted; the log is standard output, one event per line' -r
complete -c portolan -n "__fish_portolan_using_subcommand kube-dns" -l log-dir -d 'Accepted; the log is standard output, one event per line' -r
complete -c portolan -n "__fish_portolan_using_subcommand kube-dns" -l log-file -d 'Accepted; the log is standard output, one event per line' -r
complete -c portolan -n "__fish_portolan_using_subcommand kube-dns" -l log-file-max-size -d 'Accepted; the log is standard output, one event per line' -r
complete -c portolan -n "__fish_portolan_using_subcommand kube-dns" -l log-backtrace-at -d 'Accepted; the log is standard output, one event per line' -r
complete -c portolan -n "__fish_portolan_using_subcommand kube-dns" -l log-flush-frequency -d 'Accepted; the log is standard output, one event per line' -r
complete -c portolan -n "__fish_portolan_using_subcommand kube-dns" -l log-format -d 'Log format: text, as CoreDNS writes it, or json, one object per line (text)' -r
complete -c portolan -n "__fish_portolan_using_subcommand kube-dns" -o domain -d 'Cluster domain (cluster.local)' -r
complete -c portolan -n "__fish_portolan_using_subcommand kube-dns" -o dns-bind-address -d 'Listening address (all)' -r
complete -c portolan -n "__fish_portolan_using_subcommand kube-dns" -o dns-port -d 'Listening port (53)' -r
complete -c portolan -n "__fish_portolan_using_subcommand kube-dns" -o healthz-port -d 'Port of /readiness and /cache (8081)' -r
complete -c portolan -n "__fish_portolan_using_subcommand kube-dns" -o kubecfg-file -d 'Kubeconfig file (that of the service account)' -r
complete -c portolan -n "__fish_portolan_using_subcommand kube-dns" -o kube-master-url -d 'URL of the API server, without credentials; environment variables in it are expanded' -r
complete -c portolan -n "__fish_portolan_using_subcommand kube-dns" -o config-dir -d 'Directory with the keys of the ConfigMap as files' -r
complete -c portolan -n "__fish_portolan_using_subcommand kube-dns" -o config-map -d 'Name of the ConfigMap, which is watched at the API server' -r
complete -c portolan -n "__fish_portolan_using_subcommand kube-dns" -o config-map-namespace -d 'Namespace of the ConfigMap (kube-system)' -r
complete -c portolan -n "__fish_portolan_using_subcommand kube-dns" -o config-period -d 'Polling interval of the directory; at most 250ms' -r
complete -c portolan -n "__fish_portolan_using_subcommand kube-dns" -o federations -d 'Federations, used without a ConfigMap' -r
complete -c portolan -n "__fish_portolan_using_subcommand kube-dns" -o nameservers -d 'Upstreams for outside names, used without a ConfigMap (those of /etc/resolv.conf)' -r
complete -c portolan -n "__fish_portolan_using_subcommand kube-dns" -o initial-sync-timeout -d 'Accepted; the start does not wait: until the cluster data is loaded, its names get SERVFAIL and /readiness fails' -r
complete -c portolan -n "__fish_portolan_using_subcommand kube-dns" -o configDir -d 'Directory with the keys of the ConfigMap as files; same as --config-dir' -r
complete -c portolan -n "__fish_portolan_using_subcommand kube-dns" -o kubednsServer -d 'Server that resolves name servers given by a cluster name (this server)' -r
complete -c portolan -n "__fish_portolan_using_subcommand kube-dns" -o dnsmasqExec -d 'Accepted; this server replaces dnsmasq' -r
complete -c portolan -n "__fish_portolan_using_subcommand kube-dns" -o syncInterval -d 'Accepted; the directory is polled four times a second' -r
complete -c portolan -n "__fish_portolan_using_subcommand kube-dns" -o logInterval -d 'Accepted; see the metrics kubedns_dnsmasq_*' -r
complete -c portolan -n "__fish_portolan_using_subcommand kube-dns" -o probe -d 'Query a server periodically; may be repeated' -r
complete -c portolan -n "__fish_portolan_using_subcommand kube-dns" -o prometheus-addr -d 'Address of metrics and health checks (all)' -r
complete -c portolan -n "__fish_portolan_using_subcommand kube-dns" -o prometheus-port -d 'Port of metrics and health checks (10054)' -r
complete -c portolan -n "__fish_portolan_using_subcommand kube-dns" -o prometheus-path -d 'Path of the metrics (/metrics)' -r
complete -c portolan -n "__fish_portolan_using_subcommand kube-dns" -o prometheus-namespace -d 'Prefix of the sidecar\'s metric names (kubedns)' -r
complete -c portolan -n "__fish_portolan_using_subcommand kube-dns" -o dnsmasq-addr -d 'Address of dnsmasq, if it is another process (this server)' -r
complete -c portolan -n "__fish_portolan_using_subcommand kube-dns" -o dnsmasq-port -d 'Port of dnsmasq (53)' -r
complete -c portolan -n "__fish_portolan_using_subcommand kube-dns" -o dnsmasq-poll-interval-ms -d 'Interval at which dnsmasq is queried for statistics (5000)' -r
complete -c portolan -n "__fish_portolan_using_subcommand kube-dns" -o v -d 'Accepted; the log is standard output, one event per line' -r
complete -c portolan -n "__fish_portolan_using_subcommand kube-dns" -o vmodule -d 'Accepted; the log is standard output, one event per line' -r
complete -c portolan -n "__fish_portolan_using_subcommand kube-dns" -o stderrthreshold -d 'Accepted; the log is standard output, one event per line' -r
complete -c portolan -n "__fish_portolan_using_subcommand kube-dns" -o log-dir -d 'Accepted; the log is standard output, one event per line' -r
complete -c portolan -n "__fish_portolan_using_subcommand kube-dns" -o log-file -d 'Accepted; the log is standard output, one event per line' -r
complete -c portolan -n "__fish_portolan_using_subcommand kube-dns" -o log-file-max-size -d 'Accepted; the log is standard output, one event per line' -r
complete -c portolan -n "__fish_portolan_using_subcommand kube-dns" -o log-backtrace-at -d 'Accepted; the log is standard output, one event per line' -r
complete -c portolan -n "__fish_portolan_using_subcommand kube-dns" -o log-flush-frequency -d 'Accepted; the log is standard output, one event per line' -r
complete -c portolan -n "__fish_portolan_using_subcommand kube-dns" -o log-format -d 'Log format: text, as CoreDNS writes it, or json, one object per line (text)' -r
complete -c portolan -n "__fish_portolan_using_subcommand kube-dns" -l profiling -d 'Serve profiles for pprof at localhost:6060/debug/pprof/'
complete -c portolan -n "__fish_portolan_using_subcommand kube-dns" -l version -d 'Print the version and exit'
complete -c portolan -n "__fish_portolan_using_subcommand kube-dns" -l restartDnsmasq -d 'Accepted; changes of the ConfigMap always take effect, without a restart and without losing the cache'
complete -c portolan -n "__fish_portolan_using_subcommand kube-dns" -l logtostderr -d 'Accepted; the log is standard output, one event per line'
complete -c portolan -n "__fish_portolan_using_subcommand kube-dns" -l alsologtostderr -d 'Accepted; the log is standard output, one event per line'
complete -c portolan -n "__fish_portolan_using_subcommand kube-dns" -l add-dir-header -d 'Accepted; the log is standard output, one event per line'
complete -c portolan -n "__fish_portolan_using_subcommand kube-dns" -l one-output -d 'Accepted; the log is standard output, one event per line'
complete -c portolan -n "__fish_portolan_using_subcommand kube-dns" -l skip-headers -d 'Accepted; the log is standard output, one event per line'
complete -c portolan -n "__fish_portolan_using_subcommand kube-dns" -l skip-log-headers -d 'Accepted; the log is standard output, one event per line'
complete -c portolan -n "__fish_portolan_using_subcommand kube-dns" -l print-corefile -d 'Print the Corefile that would be served and exit'
complete -c portolan -n "__fish_portolan_using_subcommand kube-dns" -o profiling -d 'Serve profiles for pprof at localhost:6060/debug/pprof/'
complete -c portolan -n "__fish_portolan_using_subcommand kube-dns" -o version -d 'Print the version and exit'
complete -c portolan -n "__fish_portolan_using_subcommand kube-dns" -o restartDnsmasq -d 'Accepted; changes of the ConfigMap always take effect, without a restart and without losing the cache'
complete -c portolan -n "__fish_portolan_using_subcommand kube-dns" -o logtostderr -d 'Accepted; the log is standard output, one event per line'
complete -c portolan -n "__fish_portolan_using_subcommand kube-dns" -o alsologtostderr -d 'Accepted; the log is standard output, one event per line'
complete -c portolan -n "__fish_portolan_using_subcommand kube-dns" -o add-dir-header -d 'Accepted; the log is standard output, one event per line'
complete -c portolan -n "__fish_portolan_using_subcommand kube-dns" -o one-output -d 'Accepted; the log is standard output, one event per line'
complete -c portolan -n "__fish_portolan_using_subcommand kube-dns" -o skip-headers -d 'Accepted; the log is standard output, one event per line'
complete -c portolan -n "__fish_portolan_using_subcommand kube-dns" -o skip-log-headers -d 'Accepted; the log is standard output, one event per line'
complete -c portolan -n "__fish_portolan_using_subcommand kube-dns" -o print-corefile -d 'Print the Corefile that would be served and exit'
complete -c portolan -n "__fish_portolan_using_subcommand kube-dns" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c portolan -n "__fish_portolan_using_subcommand help; and not __fish_seen_subcommand_from check conformance migrate status ready explain cache reload loglevel requests shadow tail top report doctor completions man node kube-dns help" -f -a "check" -d 'Check a Corefile for errors and likely mistakes'
complete -c portolan -n "__fish_portolan_using_subcommand help; and not __fish_seen_subcommand_from check conformance migrate status ready explain cache reload loglevel requests shadow tail top report doctor completions man node kube-dns help" -f -a "conformance" -d 'Test any DNS server against the Kubernetes DNS specification'
complete -c portolan -n "__fish_portolan_using_subcommand help; and not __fish_seen_subcommand_from check conformance migrate status ready explain cache reload loglevel requests shadow tail top report doctor completions man node kube-dns help" -f -a "migrate" -d 'Convert an existing cluster DNS configuration to a Corefile'
complete -c portolan -n "__fish_portolan_using_subcommand help; and not __fish_seen_subcommand_from check conformance migrate status ready explain cache reload loglevel requests shadow tail top report doctor completions man node kube-dns help" -f -a "status" -d 'Show the state of the running server on one screen'
complete -c portolan -n "__fish_portolan_using_subcommand help; and not __fish_seen_subcommand_from check conformance migrate status ready explain cache reload loglevel requests shadow tail top report doctor completions man node kube-dns help" -f -a "ready" -d 'Check if this server is ready, for an exec probe'
complete -c portolan -n "__fish_portolan_using_subcommand help; and not __fish_seen_subcommand_from check conformance migrate status ready explain cache reload loglevel requests shadow tail top report doctor completions man node kube-dns help" -f -a "explain" -d 'Explain the answer to a query: which names a pod asks for, and which plugin answers why'
complete -c portolan -n "__fish_portolan_using_subcommand help; and not __fish_seen_subcommand_from check conformance migrate status ready explain cache reload loglevel requests shadow tail top report doctor completions man node kube-dns help" -f -a "cache" -d 'Look into the cache of the running server'
complete -c portolan -n "__fish_portolan_using_subcommand help; and not __fish_seen_subcommand_from check conformance migrate status ready explain cache reload loglevel requests shadow tail top report doctor completions man node kube-dns help" -f -a "reload" -d 'Reload the Corefile and wait for the outcome'
complete -c portolan -n "__fish_portolan_using_subcommand help; and not __fish_seen_subcommand_from check conformance migrate status ready explain cache reload loglevel requests shadow tail top report doctor completions man node kube-dns help" -f -a "loglevel" -d 'Change the log level of a plugin for some time'
complete -c portolan -n "__fish_portolan_using_subcommand help; and not __fish_seen_subcommand_from check conformance migrate status ready explain cache reload loglevel requests shadow tail top report doctor completions man node kube-dns help" -f -a "requests" -d 'Show the queries that wait for an upstream, oldest first'
complete -c portolan -n "__fish_portolan_using_subcommand help; and not __fish_seen_subcommand_from check conformance migrate status ready explain cache reload loglevel requests shadow tail top report doctor completions man node kube-dns help" -f -a "shadow" -d 'Compare the running server with the DNS server that it replaces (directive shadow)'
complete -c portolan -n "__fish_portolan_using_subcommand help; and not __fish_seen_subcommand_from check conformance migrate status ready explain cache reload loglevel requests shadow tail top report doctor completions man node kube-dns help" -f -a "tail" -d 'Show queries and their answers while they happen, or the last failures'
complete -c portolan -n "__fish_portolan_using_subcommand help; and not __fish_seen_subcommand_from check conformance migrate status ready explain cache reload loglevel requests shadow tail top report doctor completions man node kube-dns help" -f -a "top" -d 'Show which pods, namespaces, names or upstreams cause most queries'
complete -c portolan -n "__fish_portolan_using_subcommand help; and not __fish_seen_subcommand_from check conformance migrate status ready explain cache reload loglevel requests shadow tail top report doctor completions man node kube-dns help" -f -a "report" -d 'Write an archive for a bug report, without secrets'
complete -c portolan -n "__fish_portolan_using_subcommand help; and not __fish_seen_subcommand_from check conformance migrate status ready explain cache reload loglevel requests shadow tail top report doctor completions man node kube-dns help" -f -a "doctor" -d 'Find what is wrong with the DNS of the cluster, and what to do about it'
complete -c portolan -n "__fish_portolan_using_subcommand help; and not __fish_seen_subcommand_from check conformance migrate status ready explain cache reload loglevel requests shadow tail top report doctor completions man node kube-dns help" -f -a "completions" -d 'Print the completion script of a shell'
complete -c portolan -n "__fish_portolan_using_subcommand help; and not __fish_seen_subcommand_from check conformance migrate status ready explain cache reload loglevel requests shadow tail top report doctor completions man node kube-dns help" -f -a "man" -d 'Print the man page of the program or of a subcommand, in roff'
complete -c portolan -n "__fish_portolan_using_subcommand help; and not __fish_seen_subcommand_from check conformance migrate status ready explain cache reload loglevel requests shadow tail top report doctor completions man node kube-dns help" -f -a "node" -d 'Replace NodeLocal DNSCache on a node, with the flags and the template of node-cache'
complete -c portolan -n "__fish_portolan_using_subcommand help; and not __fish_seen_subcommand_from check conformance migrate status ready explain cache reload loglevel requests shadow tail top report doctor completions man node kube-dns help" -f -a "kube-dns" -d 'Replace the kube-dns pod, with the flags of its containers and its ConfigMap'
complete -c portolan -n "__fish_portolan_using_subcommand help; and not __fish_seen_subcommand_from check conformance migrate status ready explain cache reload loglevel requests shadow tail top report doctor completions man node kube-dns help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c portolan -n "__fish_portolan_using_subcommand help; and __fish_seen_subcommand_from cache" -f -a "get" -d 'Show the cached responses for a name'
complete -c portolan -n "__fish_portolan_using_subcommand help; and __fish_seen_subcommand_from cache" -f -a "flush" -d 'Remove cached responses'
complete -c portolan -n "__fish_portolan_using_subcommand help; and __fish_seen_subcommand_from shadow" -f -a "report" -d 'Show how the answers differ from those of the other server'

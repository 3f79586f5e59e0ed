# Print an optspec for argparse to handle cmd's options that are independent of any subcommand.
function __fish_portolan_global_optspecs
    string join \n conf= p/dns.port= pidfile= quiet plugins version h/help
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
complete -c portolan -n "__fish_portolan_needs_command" -l quiet -d 'Say nothing about zones and version at the start'
complete -c portolan -n "__fish_portolan_needs_command" -l plugins -d 'Print the directives of this build and end'
complete -c portolan -n "__fish_portolan_needs_command" -l version -d 'Print the version and end'
complete -c portolan -n "__fish_portolan_needs_command" -s h -l help -d 'Print help'
complete -c portolan -n "__fish_portolan_needs_command" -f -a "check" -d 'Says what is wrong with a Corefile, without starting anything'
complete -c portolan -n "__fish_portolan_needs_command" -f -a "conformance" -d 'Checks a DNS server, any, against the Kubernetes DNS specification'
complete -c portolan -n "__fish_portolan_needs_command" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c portolan -n "__fish_portolan_using_subcommand check" -l explain -d 'Say what a code means, such as chain/never-asked, and end' -r
complete -c portolan -n "__fish_portolan_using_subcommand check" -l json -d 'Say what is wrong as one JSON document'
complete -c portolan -n "__fish_portolan_using_subcommand check" -l sarif -d 'Say what is wrong as SARIF 2.1.0'
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
complete -c portolan -n "__fish_portolan_using_subcommand help; and not __fish_seen_subcommand_from check conformance help" -f -a "check" -d 'Says what is wrong with a Corefile, without starting anything'
complete -c portolan -n "__fish_portolan_using_subcommand help; and not __fish_seen_subcommand_from check conformance help" -f -a "conformance" -d 'Checks a DNS server, any, against the Kubernetes DNS specification'
complete -c portolan -n "__fish_portolan_using_subcommand help; and not __fish_seen_subcommand_from check conformance help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'

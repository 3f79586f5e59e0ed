_portolan() {
    local i cur prev opts cmd
    COMPREPLY=()
    if [[ "${BASH_VERSINFO[0]}" -ge 4 ]]; then
        cur="$2"
    else
        cur="${COMP_WORDS[COMP_CWORD]}"
    fi
    prev="$3"
    cmd=""
    opts=""

    for i in "${COMP_WORDS[@]:0:COMP_CWORD}"
    do
        case "${cmd},${i}" in
            ",$1")
                cmd="portolan"
                ;;
            portolan,cache)
                cmd="portolan__subcmd__cache"
                ;;
            portolan,check)
                cmd="portolan__subcmd__check"
                ;;
            portolan,completions)
                cmd="portolan__subcmd__completions"
                ;;
            portolan,conformance)
                cmd="portolan__subcmd__conformance"
                ;;
            portolan,doctor)
                cmd="portolan__subcmd__doctor"
                ;;
            portolan,explain)
                cmd="portolan__subcmd__explain"
                ;;
            portolan,help)
                cmd="portolan__subcmd__help"
                ;;
            portolan,kube-dns)
                cmd="portolan__subcmd__kube__subcmd__dns"
                ;;
            portolan,loglevel)
                cmd="portolan__subcmd__loglevel"
                ;;
            portolan,man)
                cmd="portolan__subcmd__man"
                ;;
            portolan,migrate)
                cmd="portolan__subcmd__migrate"
                ;;
            portolan,node)
                cmd="portolan__subcmd__node"
                ;;
            portolan,ready)
                cmd="portolan__subcmd__ready"
                ;;
            portolan,reload)
                cmd="portolan__subcmd__reload"
                ;;
            portolan,report)
                cmd="portolan__subcmd__report"
                ;;
            portolan,requests)
                cmd="portolan__subcmd__requests"
                ;;
            portolan,shadow)
                cmd="portolan__subcmd__shadow"
                ;;
            portolan,status)
                cmd="portolan__subcmd__status"
                ;;
            portolan,tail)
                cmd="portolan__subcmd__tail"
                ;;
            portolan,top)
                cmd="portolan__subcmd__top"
                ;;
            portolan__subcmd__cache,flush)
                cmd="portolan__subcmd__cache__subcmd__flush"
                ;;
            portolan__subcmd__cache,get)
                cmd="portolan__subcmd__cache__subcmd__get"
                ;;
            portolan__subcmd__cache,help)
                cmd="portolan__subcmd__cache__subcmd__help"
                ;;
            portolan__subcmd__cache__subcmd__help,flush)
                cmd="portolan__subcmd__cache__subcmd__help__subcmd__flush"
                ;;
            portolan__subcmd__cache__subcmd__help,get)
                cmd="portolan__subcmd__cache__subcmd__help__subcmd__get"
                ;;
            portolan__subcmd__cache__subcmd__help,help)
                cmd="portolan__subcmd__cache__subcmd__help__subcmd__help"
                ;;
            portolan__subcmd__help,cache)
                cmd="portolan__subcmd__help__subcmd__cache"
                ;;
            portolan__subcmd__help,check)
                cmd="portolan__subcmd__help__subcmd__check"
                ;;
            portolan__subcmd__help,completions)
                cmd="portolan__subcmd__help__subcmd__completions"
                ;;
            portolan__subcmd__help,conformance)
                cmd="portolan__subcmd__help__subcmd__conformance"
                ;;
            portolan__subcmd__help,doctor)
                cmd="portolan__subcmd__help__subcmd__doctor"
                ;;
            portolan__subcmd__help,explain)
                cmd="portolan__subcmd__help__subcmd__explain"
                ;;
            portolan__subcmd__help,help)
                cmd="portolan__subcmd__help__subcmd__help"
                ;;
            portolan__subcmd__help,kube-dns)
                cmd="portolan__subcmd__help__subcmd__kube__subcmd__dns"
                ;;
            portolan__subcmd__help,loglevel)
                cmd="portolan__subcmd__help__subcmd__loglevel"
                ;;
            portolan__subcmd__help,man)
                cmd="portolan__subcmd__help__subcmd__man"
                ;;
            portolan__subcmd__help,migrate)
                cmd="portolan__subcmd__help__subcmd__migrate"
                ;;
            portolan__subcmd__help,node)
                cmd="portolan__subcmd__help__subcmd__node"
                ;;
            portolan__subcmd__help,ready)
                cmd="portolan__subcmd__help__subcmd__ready"
                ;;
            portolan__subcmd__help,reload)
                cmd="portolan__subcmd__help__subcmd__reload"
                ;;
            portolan__subcmd__help,report)
                cmd="portolan__subcmd__help__subcmd__report"
                ;;
            portolan__subcmd__help,requests)
                cmd="portolan__subcmd__help__subcmd__requests"
                ;;
            portolan__subcmd__help,shadow)
                cmd="portolan__subcmd__help__subcmd__shadow"
                ;;
            portolan__subcmd__help,status)
                cmd="portolan__subcmd__help__subcmd__status"
                ;;
            portolan__subcmd__help,tail)
                cmd="portolan__subcmd__help__subcmd__tail"
                ;;
            portolan__subcmd__help,top)
                cmd="portolan__subcmd__help__subcmd__top"
                ;;
            portolan__subcmd__help__subcmd__cache,flush)
                cmd="portolan__subcmd__help__subcmd__cache__subcmd__flush"
                ;;
            portolan__subcmd__help__subcmd__cache,get)
                cmd="portolan__subcmd__help__subcmd__cache__subcmd__get"
                ;;
            portolan__subcmd__help__subcmd__shadow,report)
                cmd="portolan__subcmd__help__subcmd__shadow__subcmd__report"
                ;;
            portolan__subcmd__shadow,help)
                cmd="portolan__subcmd__shadow__subcmd__help"
                ;;
            portolan__subcmd__shadow,report)
                cmd="portolan__subcmd__shadow__subcmd__report"
                ;;
            portolan__subcmd__shadow__subcmd__help,help)
                cmd="portolan__subcmd__shadow__subcmd__help__subcmd__help"
                ;;
            portolan__subcmd__shadow__subcmd__help,report)
                cmd="portolan__subcmd__shadow__subcmd__help__subcmd__report"
                ;;
            *)
                ;;
        esac
    done

    case "${cmd}" in
        portolan)
            opts="-p -h --conf --dns.port --pidfile --log-format --quiet --plugins --version -conf -dns.port -pidfile -log-format -quiet -plugins -version --help check conformance migrate status ready explain cache reload loglevel requests shadow tail top report doctor completions man node kube-dns help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 1 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --conf)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --dns.port)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                -p)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --pidfile)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --log-format)
                    COMPREPLY=($(compgen -W "text json" -- "${cur}"))
                    return 0
                    ;;
                -conf)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                -dns.port)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                -pidfile)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                -log-format)
                    COMPREPLY=($(compgen -W "text json" -- "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        portolan__subcmd__cache)
            opts="-h --socket --cert --key --ca --help get flush help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 2 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --socket)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --cert)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --key)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --ca)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        portolan__subcmd__cache__subcmd__flush)
            opts="-h --socket --cert --key --ca --below --all --json --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --socket)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --cert)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --key)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --ca)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --below)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        portolan__subcmd__cache__subcmd__get)
            opts="-h --socket --cert --key --ca --json --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --socket)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --cert)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --key)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --ca)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        portolan__subcmd__cache__subcmd__help)
            opts="get flush help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        portolan__subcmd__cache__subcmd__help__subcmd__flush)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        portolan__subcmd__cache__subcmd__help__subcmd__get)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        portolan__subcmd__cache__subcmd__help__subcmd__help)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        portolan__subcmd__check)
            opts="-h --json --sarif --files --strict --rbac --for --explain --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 2 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --for)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --explain)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        portolan__subcmd__completions)
            opts="-h --help bash elvish fish powershell zsh"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 2 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        portolan__subcmd__conformance)
            opts="-h --server --zone --kubeconfig --context --manifests --no-create --print-manifests --namespace --json --filter --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 2 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --server)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --zone)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --kubeconfig)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --context)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --manifests)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --namespace)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --filter)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        portolan__subcmd__doctor)
            opts="-h --socket --cert --key --ca --only --fix-text --json --sarif --in-cluster --kubeconfig --context --conf --service --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 2 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --socket)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --cert)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --key)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --ca)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --only)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --kubeconfig)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --context)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --conf)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --service)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        portolan__subcmd__explain)
            opts="-h --socket --cert --key --ca --from --server --fresh --conf --manifests --format --json --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 2 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --socket)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --cert)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --key)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --ca)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --from)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --server)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --conf)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --manifests)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --format)
                    COMPREPLY=($(compgen -W "text json mermaid" -- "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        portolan__subcmd__help)
            opts="check conformance migrate status ready explain cache reload loglevel requests shadow tail top report doctor completions man node kube-dns help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 2 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        portolan__subcmd__help__subcmd__cache)
            opts="get flush"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        portolan__subcmd__help__subcmd__cache__subcmd__flush)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        portolan__subcmd__help__subcmd__cache__subcmd__get)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        portolan__subcmd__help__subcmd__check)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        portolan__subcmd__help__subcmd__completions)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        portolan__subcmd__help__subcmd__conformance)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        portolan__subcmd__help__subcmd__doctor)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        portolan__subcmd__help__subcmd__explain)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        portolan__subcmd__help__subcmd__help)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        portolan__subcmd__help__subcmd__kube__subcmd__dns)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        portolan__subcmd__help__subcmd__loglevel)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        portolan__subcmd__help__subcmd__man)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        portolan__subcmd__help__subcmd__migrate)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        portolan__subcmd__help__subcmd__node)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        portolan__subcmd__help__subcmd__ready)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        portolan__subcmd__help__subcmd__reload)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        portolan__subcmd__help__subcmd__report)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        portolan__subcmd__help__subcmd__requests)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        portolan__subcmd__help__subcmd__shadow)
            opts="report"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        portolan__subcmd__help__subcmd__shadow__subcmd__report)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        portolan__subcmd__help__subcmd__status)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        portolan__subcmd__help__subcmd__tail)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        portolan__subcmd__help__subcmd__top)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        portolan__subcmd__kube__subcmd__dns)
            opts="-h --domain --dns-bind-address --dns-port --healthz-port --kubecfg-file --kube-master-url --config-dir --config-map --config-map-namespace --config-period --federations --nameservers --initial-sync-timeout --profiling --version --configDir --kubednsServer --dnsmasqExec --restartDnsmasq --syncInterval --logInterval --probe --prometheus-addr --prometheus-port --prometheus-path --prometheus-namespace --dnsmasq-addr --dnsmasq-port --dnsmasq-poll-interval-ms --v --vmodule --logtostderr --alsologtostderr --stderrthreshold --log-dir --log-file --log-file-max-size --log-backtrace-at --log-flush-frequency --add-dir-header --one-output --skip-headers --skip-log-headers --log-format --print-corefile -domain -dns-bind-address -dns-port -healthz-port -kubecfg-file -kube-master-url -config-dir -config-map -config-map-namespace -config-period -federations -nameservers -initial-sync-timeout -profiling -version -configDir -kubednsServer -dnsmasqExec -restartDnsmasq -syncInterval -logInterval -probe -prometheus-addr -prometheus-port -prometheus-path -prometheus-namespace -dnsmasq-addr -dnsmasq-port -dnsmasq-poll-interval-ms -v -vmodule -logtostderr -alsologtostderr -stderrthreshold -log-dir -log-file -log-file-max-size -log-backtrace-at -log-flush-frequency -add-dir-header -one-output -skip-headers -skip-log-headers -log-format -print-corefile --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 2 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --domain)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --dns-bind-address)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --dns-port)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --healthz-port)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --kubecfg-file)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --kube-master-url)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --config-dir)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --config-map)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --config-map-namespace)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --config-period)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --federations)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --nameservers)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --initial-sync-timeout)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --configDir)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --kubednsServer)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --dnsmasqExec)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --syncInterval)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --logInterval)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --probe)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --prometheus-addr)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --prometheus-port)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --prometheus-path)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --prometheus-namespace)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --dnsmasq-addr)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --dnsmasq-port)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --dnsmasq-poll-interval-ms)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --v)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --vmodule)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --stderrthreshold)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --log-dir)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --log-file)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --log-file-max-size)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --log-backtrace-at)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --log-flush-frequency)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --log-format)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                -domain)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                -dns-bind-address)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                -dns-port)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                -healthz-port)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                -kubecfg-file)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                -kube-master-url)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                -config-dir)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                -config-map)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                -config-map-namespace)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                -config-period)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                -federations)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                -nameservers)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                -initial-sync-timeout)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                -configDir)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                -kubednsServer)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                -dnsmasqExec)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                -syncInterval)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                -logInterval)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                -probe)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                -prometheus-addr)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                -prometheus-port)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                -prometheus-path)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                -prometheus-namespace)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                -dnsmasq-addr)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                -dnsmasq-port)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                -dnsmasq-poll-interval-ms)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                -v)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                -vmodule)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                -stderrthreshold)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                -log-dir)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                -log-file)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                -log-file-max-size)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                -log-backtrace-at)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                -log-flush-frequency)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                -log-format)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        portolan__subcmd__loglevel)
            opts="-h --socket --cert --key --ca --for --json --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 2 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --socket)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --cert)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --key)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --ca)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --for)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        portolan__subcmd__man)
            opts="-h --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 2 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        portolan__subcmd__migrate)
            opts="-h --from --defaults --json --check --ttl --zone --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 2 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --from)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --check)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --zone)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        portolan__subcmd__node)
            opts="-h --localip --basecorefile --kubednscm --upstreamsvc --setupinterface --interfacename --setupiptables --syncinterval --metrics-listen-address --health-port --skipteardown --dns.port --p --pidfile --quiet --version --domain --interfacekind --rules --log-format --print-corefile --conf --corefile --reloadwithsignal --plugins --initialdelay --setupebtables --v --vmodule --logtostderr --alsologtostderr --stderrthreshold --log-dir --log-link --logbuflevel --log-backtrace-at -localip -basecorefile -kubednscm -upstreamsvc -setupinterface -interfacename -setupiptables -syncinterval -metrics-listen-address -health-port -skipteardown -dns.port -p -pidfile -quiet -version -domain -interfacekind -rules -log-format -print-corefile -conf -corefile -reloadwithsignal -plugins -initialdelay -setupebtables -v -vmodule -logtostderr -alsologtostderr -stderrthreshold -log-dir -log-link -logbuflevel -log-backtrace-at --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 2 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --localip)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --basecorefile)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --kubednscm)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --upstreamsvc)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --interfacename)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --syncinterval)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --metrics-listen-address)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --health-port)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --dns.port)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --p)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --pidfile)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --domain)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --interfacekind)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --rules)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --log-format)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --conf)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --corefile)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --initialdelay)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --v)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --vmodule)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --stderrthreshold)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --log-dir)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --log-link)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --logbuflevel)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --log-backtrace-at)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                -localip)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                -basecorefile)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                -kubednscm)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                -upstreamsvc)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                -interfacename)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                -syncinterval)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                -metrics-listen-address)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                -health-port)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                -dns.port)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                -p)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                -pidfile)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                -domain)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                -interfacekind)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                -rules)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                -log-format)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                -conf)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                -corefile)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                -initialdelay)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                -v)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                -vmodule)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                -stderrthreshold)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                -log-dir)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                -log-link)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                -logbuflevel)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                -log-backtrace-at)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        portolan__subcmd__ready)
            opts="-h --socket --cert --key --ca --json --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 2 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --socket)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --cert)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --key)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --ca)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        portolan__subcmd__reload)
            opts="-h --socket --cert --key --ca --json --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 2 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --socket)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --cert)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --key)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --ca)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        portolan__subcmd__report)
            opts="-o -h --socket --cert --key --ca --output --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 2 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --socket)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --cert)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --key)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --ca)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --output)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                -o)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        portolan__subcmd__requests)
            opts="-h --socket --cert --key --ca --json --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 2 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --socket)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --cert)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --key)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --ca)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        portolan__subcmd__shadow)
            opts="-h --socket --cert --key --ca --help report help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 2 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --socket)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --cert)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --key)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --ca)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        portolan__subcmd__shadow__subcmd__help)
            opts="report help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        portolan__subcmd__shadow__subcmd__help__subcmd__help)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        portolan__subcmd__shadow__subcmd__help__subcmd__report)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        portolan__subcmd__shadow__subcmd__report)
            opts="-h --socket --cert --key --ca --json --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --socket)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --cert)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --key)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --ca)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        portolan__subcmd__status)
            opts="-h --socket --cert --key --ca --all --context --json --wait --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 2 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --socket)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --cert)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --key)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --ca)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --all)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --context)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --wait)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        portolan__subcmd__tail)
            opts="-n -f -o -h --socket --cert --key --ca --all --context --name --zone --type --rcode --plugin --client --namespace --pod --slow --sample --last --follow --for --output --json --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 2 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --socket)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --cert)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --key)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --ca)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --all)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --context)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --name)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --zone)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --type)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --rcode)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --plugin)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --client)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --namespace)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                -n)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --pod)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --slow)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --sample)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --last)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --for)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --output)
                    COMPREPLY=($(compgen -W "line wide json logfmt" -- "${cur}"))
                    return 0
                    ;;
                -o)
                    COMPREPLY=($(compgen -W "line wide json logfmt" -- "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        portolan__subcmd__top)
            opts="-h --socket --cert --key --ca --all --context --by --window --rows --once --json --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 2 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --socket)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --cert)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --key)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --ca)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --all)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --context)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --by)
                    COMPREPLY=($(compgen -W "pod ns name zone rcode upstream waste domain" -- "${cur}"))
                    return 0
                    ;;
                --window)
                    COMPREPLY=($(compgen -W "10s 1m 10m" -- "${cur}"))
                    return 0
                    ;;
                --rows)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
    esac
}

if [[ "${BASH_VERSINFO[0]}" -eq 4 && "${BASH_VERSINFO[1]}" -ge 4 || "${BASH_VERSINFO[0]}" -gt 4 ]]; then
    complete -F _portolan -o nosort -o bashdefault -o default portolan
else
    complete -F _portolan -o bashdefault -o default portolan
fi

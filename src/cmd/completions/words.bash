
# Completes COMMAND after `--` as a command of its own, and each value of a list as the first one.
_NAME_words() {
    local at
    case ${COMP_WORDS[1]} in
        record | mark)
            for ((at = 2; at < COMP_CWORD; at++)); do
                if [[ ${COMP_WORDS[at]} == -- ]]; then
                    _NAME_command "$((at + 1))" "$2"
                    return
                fi
            done
            ;;
    esac
    local last=$2 previous=$3 kept=
    if [[ $last == '=' ]]; then
        last=
    elif [[ $previous == '=' ]]; then
        previous=${COMP_WORDS[COMP_CWORD - 2]}
    fi
    if [[ $last == *,* ]]; then
        kept=${last%,*},
        last=${last##*,}
    fi
    _NAME "$1" "$last" "$previous"
    [[ -n $kept ]] || return 0
    local value values=()
    for value in "${COMPREPLY[@]}"; do
        [[ ,$kept == *",$value,"* ]] || values+=("$kept$value")
    done
    COMPREPLY=("${values[@]}")
}

# The word of COMMAND, which begins at the word with this number.
_NAME_command() {
    if ((COMP_CWORD == $1)); then
        COMPREPLY=($(compgen -c -- "$2"))
    elif declare -F _comp_command_offset >/dev/null; then
        _comp_command_offset "$1"
    elif declare -F _command_offset >/dev/null; then
        _command_offset "$1"
    fi
}


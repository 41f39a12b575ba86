
# COMMAND after `--` is a command of its own.
function __fish_NAME_has_command
    __fish_NAME_using_subcommand record
    or __fish_NAME_using_subcommand mark
    and contains -- -- (commandline -opc)
end

function __fish_NAME_command
    set -l words (commandline -opc)
    set -l at (contains -i -- -- $words)
    set -e words[1..$at]
    set -l last (commandline -ct)
    complete -C (string join ' ' -- (string escape -- $words) "$last")
end

complete -c CALLED -n __fish_NAME_has_command -f -a '(__fish_NAME_command)'

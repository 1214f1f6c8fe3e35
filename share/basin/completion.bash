# Completion of basin for bash. Made by: basin help --completion bash
_basin_awk='
@AWK@
'
_basin() {
    local IFS=$'\n'
    COMPREPLY=($("${COMP_WORDS[0]}" help --markdown 2>/dev/null |
        awk "$_basin_awk" "${COMP_WORDS[@]:1:COMP_CWORD}" | cut -f1))
}
complete -o default -F _basin basin

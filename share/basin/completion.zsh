#compdef basin
# Completion of basin for zsh. Made by: basin help --completion zsh
_basin_awk='
@AWK@
'
_basin() {
    local -a offered
    offered=("${(@f)$($words[1] help --markdown 2>/dev/null | awk "$_basin_awk" "${(@)words[2,CURRENT]}")}")
    if [[ -z $offered ]]; then
        _files
        return
    fi
    offered=("${(@)offered//:/\\:}")
    offered=("${(@)offered//$'\t'/:}")
    _describe -t commands basin offered
}

_basin "$@"

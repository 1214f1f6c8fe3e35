#compdef basin
# Completion of basin for zsh. Made by: basin help --completion zsh
_basin() {
    local -a offered
    offered=("${(@f)$($words[1] __complete "${(@)words[2,CURRENT]}" 2>/dev/null)}")
    if [[ -z $offered ]]; then
        _files
        return
    fi
    offered=("${(@)offered//:/\\:}")
    offered=("${(@)offered//$'\t'/:}")
    _describe -t commands basin offered
}

_basin "$@"

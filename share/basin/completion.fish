# Completion of basin for fish. Made by: basin help --completion fish
set -g __basin_awk '
@AWK@
'
function __basin_offered
    set -l words (commandline -opc) (commandline -ct)
    $words[1] help --markdown 2>/dev/null | awk "$__basin_awk" $words[2..-1]
end
complete -c basin -f -n 'count (__basin_offered) >/dev/null' -a '(__basin_offered)'
complete -c basin -F -n 'not count (__basin_offered) >/dev/null'

# Completion of basin for fish. Made by: basin help --completion fish
function __basin_offered
    set -l words (commandline -opc) (commandline -ct)
    $words[1] __complete $words[2..-1] 2>/dev/null
end
complete -c basin -f -n 'count (__basin_offered) >/dev/null' -a '(__basin_offered)'
complete -c basin -F -n 'not count (__basin_offered) >/dev/null'

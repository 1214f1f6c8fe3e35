# What may stand in place of the last of the words given as arguments, by the manual on standard input
# (basin help --markdown): a candidate per line, a tab, what it is. The scripts of the shells hold this
# text between single quotes.
function offer(before, name, help) {
    sub(/[.] .*/, "", help)
    if (index(name, typed) == 1) print before name "\t" help
}
function offer_words(noun) { # nouns and commands of one word, or the verbs of a noun
    for (i = 1; i <= commands; i++) {
        parts = split(command[i], part, " ")
        if (noun == "" && parts == 1) offer("", part[1], about[i])
        if (noun == "" && parts == 2 && !seen[part[1]]++) offer("", part[1], verbs[part[1]])
        if (noun != "" && parts == 2 && part[1] == noun) offer("", part[2], about[i])
    }
}
BEGIN {
    count = ARGC - 1
    for (i = 1; i <= count; i++) word[i] = ARGV[i]
    ARGC = 1
    if (count > 1 && word[count] == "=") word[count] = "" # bash makes three words of --backend=c
    if (count > 2 && word[count - 1] == "=") { # two statements: awks differ in what they evaluate first
        word[count - 1] = word[count]
        count--
    }
    typed = word[count]
    backslash = sprintf("%c", 92)
}
/^## basin / {
    name = substr($0, 10)
    command[++commands] = name
    split(name, part, " ")
    if (part[2]) verbs[part[1]] = verbs[part[1]] (verbs[part[1]] ? ", " : "") part[2]
    chosen = 0
    if (count > 2 && name == word[1] " " word[2]) chosen = 2
    if (count > 1 && name == word[1]) chosen = 1
    if (chosen) used = chosen
    next
}
name && !(commands in about) && /: `basin / { about[commands] = substr($0, 1, index($0, ": `basin ") - 1) }
chosen && /^[|] `-/ {
    while (i = index($0, backslash)) $0 = substr($0, 1, i - 1) substr($0, i + 1)
    end = index(substr($0, 4), "`")
    field = substr($0, 4, end - 1)
    text = substr($0, end + 4)
    sub(/^ [|] [^|]*[|] /, "", text)
    sub(/ [|]$/, "", text)
    options++
    if (field ~ /^-[^-]/) letter[options] = substr(field, 1, 2)
    sub(/^-., /, "", field)
    negatable[options] = sub(/^--[[]no-]/, "--", field)
    split(field, part, " ")
    option[options] = part[1]
    value[options] = part[2]
    help[options] = text
}
END {
    if (count < 1) exit
    equals = index(typed, "=")
    last = count > used + 1 ? word[count - 1] : ""
    before = ""
    if (count == 1) offer_words("")
    else if (!used && count == 2) offer_words(word[1])
    else if (used && typed ~ /^-/ && !equals) {
        for (i = 1; i <= options; i++) {
            offer("", option[i], help[i])
            if (negatable[i]) offer("", "--no-" substr(option[i], 3), help[i])
        }
        offer("", "--help", "What most people need")
        offer("", "--help-all", "All options and settings")
    } else if (used && (typed ~ /^--/ || last ~ /^-/)) {
        if (typed ~ /^--/) {
            last = substr(typed, 1, equals - 1)
            before = last "="
            typed = substr(typed, equals + 1)
        }
        for (i = 1; i <= options; i++)
            if ((last == option[i] || last == letter[i]) && index(value[i], "|"))
                for (k = 1; k <= split(value[i], part, "|"); k++) offer(before, part[k], "")
    } else if (word[1] == "help" && count < 4) offer_words(count == 3 ? word[2] : "")
}

/* A text to train small tokenizers on: contractions, blanks, umlauts, kanji, emoji. */
#ifndef TESTS_DATA_TEXT_BPE_TEXT_H
#define TESTS_DATA_TEXT_BPE_TEXT_H

static const char bpe_text[] =
    "The energy goes down, and the tokens go down with it. Don't we'll see? They're there, I'm "
    "sure; he'd say it's 1234567 times.\n"
    "The tokens of the text: the then these those.\n"
    "\n"
    "  Indented lines, and  double  blanks.\t\tTabs.\n"
    "\xc3\x9c"
    "ber die Energie: gr\xc3\xb6\xc3\x9f"
    "er, kleiner, gr\xc3\xb6\xc3\x9f"
    "er.\n"
    "\xe6\x97\xa5\xe6\x9c\xac\xe8\xaa\x9e\xe3\x81\xae\xe6\x96\x87\xe5\xad\x97\xe3\x81\xa8\xe6\x96"
    "\x87\xe5\xad\x97\xe3\x80\x82\xf0\x9f\x98\x80\xf0\x9f\x98\x80\xf0\x9f\x98\x80 energy energy "
    "tokens tokens\n";
enum { BPE_VOCABULARY = 320 };

#endif

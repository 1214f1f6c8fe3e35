"""The site's copy of the Explorer (make explorer), with the model of photographs beside it. The copy's
policy allows requests to the site alone, and it names the file that it loads when a visitor asks.

    python3 scripts/site/explorer.py FOLDER
"""

import pathlib
import shutil
import sys

from tree import ROOT

PAGE = ROOT / "build/explorer/basin.html"
PHOTOGRAPHS = "models/photos.safetensors"


def write(folder):
    page = PAGE.read_text(encoding="utf-8")
    named = '<meta name="photographs" content="" data-bytes="">'
    size = (ROOT / PHOTOGRAPHS).stat().st_size
    for old, new in (
        ("default-src 'none';", "default-src 'none'; connect-src 'self';"),
        (named, named.replace('content=""', f'content="{PHOTOGRAPHS}"').replace('bytes=""', f'bytes="{size}"')),
    ):
        if page.count(old) != 1:
            sys.exit(f"{PAGE}: {page.count(old)} times {old}, wanted once")
        page = page.replace(old, new)
    (folder / "explorer.html").write_text(page, encoding="utf-8")
    (folder / PHOTOGRAPHS).parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(ROOT / PHOTOGRAPHS, folder / PHOTOGRAPHS)


if __name__ == "__main__":
    write(pathlib.Path(sys.argv[1]))

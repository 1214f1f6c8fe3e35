// Light and dark, the menu of small screens, and the search. The index is loaded as a script when
// the search is first used: a page that was opened from disk may fetch nothing.
"use strict";
const root = document.currentScript.dataset.root;

function remembered() {
    try { return localStorage.getItem("shade"); } catch { return null; }
}

function shade(dark) {
    document.documentElement.classList.toggle("dark", dark);
    try { localStorage.setItem("shade", dark ? "dark" : "light"); } catch { /* not from disk */ }
}

const dusk = matchMedia("(prefers-color-scheme: dark)");
document.documentElement.classList.toggle(
    "dark", remembered() ? remembered() === "dark" : dusk.matches);

function loadIndex(then) {
    if (window.basinIndex) return then();
    const script = document.createElement("script");
    script.src = root + "index.js";
    script.onload = then;
    document.head.append(script);
}

// How well a section answers: every word must occur; a heading counts more than text, a whole word
// more than a part of one.
function worth(row, words) {
    const [, title, heading, text] = row.map(part => part.toLowerCase());
    let sum = 0;
    for (const word of words) {
        const inHeading = heading.includes(word), inTitle = title.includes(word);
        if (!inHeading && !inTitle && !text.includes(word)) return 0;
        sum += 1 + (inHeading ? 20 : 0) + (inTitle ? 8 : 0) + (heading === word ? 60 : 0);
        sum += Math.min(5, text.split(word).length - 1);
    }
    return heading.startsWith(words.join(" ")) ? sum + 30 : sum;
}

function search(query) {
    const words = query.toLowerCase().split(/\s+/).filter(Boolean);
    if (!words.length) return [];
    return window.basinIndex.map(row => [worth(row, words), row]).filter(pair => pair[0])
        .sort((a, b) => b[0] - a[0]).slice(0, 30).map(pair => pair[1]);
}

function excerpt(text, word) {
    const at = text.toLowerCase().indexOf(word), begin = Math.max(0, at - 50);
    const line = document.createElement("small");
    if (at < 0) {
        line.textContent = text.slice(0, 140);
        return line;
    }
    const mark = document.createElement("mark");
    mark.textContent = text.slice(at, at + word.length);
    line.append((begin ? "…" : "") + text.slice(begin, at), mark,
        text.slice(at + word.length, at + word.length + 90));
    return line;
}

function entry(row, word) {
    const link = document.createElement("a"), name = document.createElement("b");
    link.href = root + row[0];
    name.textContent = row[2];
    link.append(name, row[1] === row[2] ? "" : " - " + row[1], excerpt(row[3], word));
    return link;
}

function show(query) {
    const box = document.getElementById("found");
    box.hidden = !query.trim();
    const rows = search(query), word = query.toLowerCase().trim().split(/\s+/)[0];
    box.replaceChildren(...rows.map(row => entry(row, word)));
    if (!rows.length) box.textContent = "Nothing found.";
    else box.firstChild.classList.add("first");
}

function listen() {
    const field = document.getElementById("search"), box = document.getElementById("found");
    field.addEventListener("input", () => loadIndex(() => show(field.value)));
    field.addEventListener("keydown", event => {
        if (event.key === "Enter" && box.querySelector("a")) box.querySelector("a").click();
        if (event.key === "Escape") box.hidden = true;
    });
    box.addEventListener("click", () => { box.hidden = true; });
    document.addEventListener("keydown", event => {
        if (event.key === "/" && event.target === document.body) {
            event.preventDefault();
            field.focus();
        }
    });
    document.getElementById("shade").addEventListener("click", () =>
        shade(!document.documentElement.classList.contains("dark")));
    const menu = document.getElementById("menu"), nav = document.querySelector("nav");
    menu.addEventListener("click", () =>
        menu.setAttribute("aria-expanded", nav.classList.toggle("open")));
}
document.addEventListener("DOMContentLoaded", listen);

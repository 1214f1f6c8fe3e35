/* Where a patch looks: shares of attention are bytes [step, head, query, key], a script element a
 * picture; each query's row is scaled to its greatest share, and the shares of a row add up to 1. */
'use strict';
(() => {
  const all = (root, what) => Array.from(root.querySelectorAll(what));
  const add = (to, kind, name) => {
    const made = document.createElement(kind);
    if (name) made.className = name;
    to.append(made);
    return made;
  };
  /* Several models have the same patches: a choice is a choice for all of them. */
  const followers = [];
  const choosePatch = patch => followers.forEach(follow => follow(patch));
  const percent = share => `${(100 * share).toFixed(share < 0.1 ? 1 : 0)} %`;

  for (const root of all(document, '.attend')) {
    const heads = Number(root.dataset.heads), across = Number(root.dataset.across);
    const keys = Number(root.dataset.keys), patches = across * across, extra = keys - patches;
    const steps = root.dataset.steps.split(' ').map(Number);
    const slider = root.querySelector('input[type=range]');
    const reverse = root.querySelector('input[type=checkbox]');
    const output = root.querySelector('output');
    const board = root.querySelector('.patches');
    const text = root.querySelector('.attend-body p');
    const sources = all(root, 'script[type="text/plain"]');
    const picks = all(root, '.picks input');
    const bytes = sources.map(() => null);
    let picture = 0, patch = 0;

    const place = n => `row ${Math.floor(n / across) + 1}, col ${n % across + 1}`;
    const data = () => {
      if (!bytes[picture]) {
        const packed = atob(sources[picture].textContent.trim());
        bytes[picture] = Uint8Array.from(packed, letter => letter.charCodeAt(0));
      }
      return bytes[picture];
    };
    /* The shares that one query gives to all keys. */
    const row = (head, query) => {
      const at = ((Number(slider.value) * heads + head) * patches + query) * keys;
      const part = data().subarray(at, at + keys);
      const sum = part.reduce((a, b) => a + b, 0) || 1;
      return Array.from(part, byte => byte / sum);
    };
    /* A number a patch: where `patch` looks, or who looks at it. */
    const look = head => {
      if (!reverse.checked) return row(head, patch).slice(extra);
      return Array.from({ length: patches }, (_, query) => row(head, query)[extra + patch]);
    };

    const mark = target => {
      target.style.left = `${100 * (patch % across) / across}%`;
      target.style.top = `${100 * Math.floor(patch / across) / across}%`;
      target.style.width = target.style.height = `${100 / across}%`;
    };
    const base = board.querySelector('img') || add(board, 'img');
    const cursor = add(board, 'div', 'chosen');
    const maps = Array.from({ length: heads + 1 }, (_, i) => {
      const figure = add(root.querySelector('.attend-heads'), 'figure');
      const map = add(figure, 'div', 'map');
      const image = add(map, 'img'), canvas = add(map, 'canvas'), chosen = add(map, 'div', 'chosen');
      const caption = add(figure, 'figcaption');
      canvas.width = canvas.height = across;
      image.alt = i ? `Head ${i}` : 'All heads';
      const title = add(caption, 'b');
      title.textContent = image.alt;
      return { image, canvas, chosen, range: add(caption, 'span'), note: add(caption, 'div') };
    });

    /* From the least share, clear, to the greatest: most heads are nearly even at first. */
    const paint = (map, share) => {
      const others = share.filter((value, n) => n !== patch || value > 0);
      const most = Math.max(...others), least = Math.min(...others);
      const strength = value => most > least ? Math.max(0, (value - least) / (most - least)) : 0.5;
      const context = map.canvas.getContext('2d');
      const pixels = context.createImageData(across, across);
      share.forEach((value, n) => pixels.data.set(
        [255, 176, 32, n === patch && !value ? 0 : Math.round(235 * strength(value))], 4 * n));
      context.putImageData(pixels, 0, 0);
      map.range.textContent = ` ${percent(least)} to ${percent(most)}`;
      map.note.textContent = `most at ${place(share.indexOf(most))}`;
      mark(map.chosen);
    };
    const show = () => {
      const shares = Array.from({ length: heads }, (_, head) => look(head));
      const mean = shares[0].map((_, n) => shares.reduce((sum, one) => sum + one[n], 0) / heads);
      [mean, ...shares].forEach((share, i) => paint(maps[i], share));
      mark(cursor);
      const hidden = sources[picture].dataset.mask[patch] === '1';
      const even = 1 / (keys - Number(!row(0, patch)[extra + patch]));
      const cls = shares.map((_, head) => row(head, patch)[0]).reduce((a, b) => a + b, 0) / heads;
      text.textContent = `Patch in ${place(patch)}, ${hidden ? 'occluded' : 'shown'}.` +
        ` Spread evenly, each would have ${percent(even)}.` +
        (extra && !reverse.checked ? ` It gives CLS ${percent(cls)}.` : '');
      output.textContent = `${root.dataset.unit} ${steps[Number(slider.value)]}`;
      slider.setAttribute('aria-valuetext', output.textContent);
    };
    const choose = () => {
      picture = Math.max(0, picks.findIndex(pick => pick.checked));
      const number = sources[picture].dataset.picture;
      const given = document.getElementById(`given-${number}`);
      const truth = document.getElementById(`truth-${number}`);
      base.src = given.src;
      base.alt = given.alt;
      for (const one of [base, ...maps.map(map => map.image)])
        one.classList.toggle('pixels', given.classList.contains('pixels'));
      for (const map of maps) map.image.src = truth.src;
      show();
    };

    const click = event => {
      const box = base.getBoundingClientRect();
      const part = (at, from, size) =>
        Math.max(0, Math.min(across - 1, Math.floor((at - from) / size * across)));
      choosePatch(part(event.clientY, box.top, box.height) * across +
        part(event.clientX, box.left, box.width));
    };
    followers.push(chosen => { patch = chosen; show(); });
    board.addEventListener('click', click);
    board.addEventListener('keydown', event => {
      const by = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[
        event.key];
      if (!by) return;
      event.preventDefault();
      const x = (patch % across + by[0] + across) % across;
      const y = (Math.floor(patch / across) + by[1] + across) % across;
      choosePatch(y * across + x);
    });
    slider.addEventListener('input', show);
    reverse.addEventListener('change', show);
    for (const pick of picks) pick.addEventListener('change', choose);
    const hidden = sources[0].dataset.mask, middle = (across >> 1) * across + (across >> 1);
    patch = Math.max(hidden.indexOf('1', middle), hidden.indexOf('1'), 0);
    choose();
  }
})();

/* The script of every page. A stepper is a group of frames, of which a slider shows one at a time;
 * a toggle is a check box that sets a class on an element; a picture of class zoom is seen large. */
'use strict';
(() => {
  const all = (root, what) => Array.from(root.querySelectorAll(what));

  for (const box of all(document, 'input[data-toggle]')) {
    const target = document.getElementById(box.dataset.toggle);
    const set = () => target.classList.toggle('other', box.checked);
    box.addEventListener('change', set);
    set();
  }

  /* A picture that is on the page already, shown a second time. */
  for (const place of all(document, '[data-copy]')) {
    const from = document.getElementById(place.dataset.copy);
    const copy = from.cloneNode();
    copy.removeAttribute('id');
    if ('plain' in place.dataset) copy.classList.remove('zoom');
    copy.alt = place.textContent || from.alt;
    place.replaceChildren(copy);
  }

  /* A dashed line in each plot of the stepper, at the step shown. */
  const markers = root => all(root, '.plot svg').map(svg => {
    const { low, high, from, to, top, bottom } = svg.querySelector('.frame').dataset;
    const line = document.createElementNS('http://www.w3.org/2000/svg', 'path');
    line.setAttribute('class', 'marker');
    svg.append(line);
    return step => {
      const x = Number(from) + (step - low) / (high - low) * (to - from);
      line.setAttribute('d', `M${x.toFixed(1)} ${top}V${bottom}`);
    };
  });

  for (const root of all(document, '.stepper')) {
    const slider = root.querySelector('input[type=range]');
    const button = root.querySelector('button');
    const output = root.querySelector('output');
    const steps = Number(slider.max);
    const frames = all(root, 'img[data-step]');
    const kept = frames.map(frame => Number(frame.dataset.step)); /* a long descent has not all */
    const mark = markers(root);
    let timer = 0;

    const show = () => {
      const step = Number(slider.value);
      const at = Math.max(...kept.filter(one => one <= step));
      for (const frame of frames)
        frame.classList.toggle('now', Number(frame.dataset.step) === at);
      output.textContent = `${slider.dataset.unit} ${step} of ${steps}`;
      slider.setAttribute('aria-valuetext', output.textContent);
      for (const set of mark) set(step);
    };
    const move = step => {
      slider.value = String(Math.max(0, Math.min(steps, step)));
      show();
    };
    const stop = () => {
      clearInterval(timer);
      timer = 0;
      button.textContent = 'Play';
    };
    const play = () => {
      if (Number(slider.value) === steps) move(0);
      button.textContent = 'Pause';
      timer = setInterval(() => {
        move(Number(slider.value) + 1);
        if (Number(slider.value) === steps) stop();
      }, Math.max(120, Math.min(400, 6000 / (steps + 1))));
    };

    slider.addEventListener('input', () => { stop(); show(); });
    button.addEventListener('click', () => timer ? stop() : play());
    root.addEventListener('keydown', event => {
      if (event.target.matches('input[type=range], input[type=radio]')) return;
      const by = { ArrowLeft: -1, ArrowRight: 1, Home: -steps, End: steps }[event.key];
      if (!by) return;
      event.preventDefault();
      stop();
      move(Number(slider.value) + by);
    });
    const scenes = all(root, '.scene');
    const picks = all(root, '.picks input');
    const choose = () => {
      const at = Math.max(0, picks.findIndex(pick => pick.checked));
      scenes.forEach((scene, i) => scene.classList.toggle('chosen', i === at));
      show();
    };
    for (const pick of picks) pick.addEventListener('change', choose);
    choose();
  }

  /* Pictures seen large: a click or Enter opens, Escape or a click closes, arrows go on to the
   * next picture of the same figure, in the same place, so that differences show. */
  const enlarge = (pictures, at) => {
    const dialog = document.createElement('dialog');
    dialog.className = 'large';
    dialog.innerHTML = '<img alt=""><div><p></p><button type="button">Previous</button>' +
      '<button type="button">Next</button><button type="button">Close</button></div>';
    const [back, next, close] = all(dialog, 'button');
    const large = dialog.querySelector('img');
    const go = by => {
      at = (at + by + pictures.length) % pictures.length;
      large.src = pictures[at].src;
      large.alt = pictures[at].alt;
      large.className = pictures[at].matches('.pixels, .sheet') ? 'pixels' : '';
      dialog.querySelector('p').textContent = large.alt;
    };
    back.hidden = next.hidden = pictures.length < 2;
    back.addEventListener('click', () => go(-1));
    next.addEventListener('click', () => go(1));
    for (const one of [close, large]) one.addEventListener('click', () => dialog.close());
    dialog.addEventListener('keydown', event => {
      const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
      if (!by) return;
      event.preventDefault();
      event.stopPropagation();
      go(by);
    });
    dialog.addEventListener('close', () => dialog.remove());
    document.body.append(dialog);
    go(0);
    dialog.showModal();
    close.focus();
  };
  const open = picture => {
    const group = picture.closest('.together') || picture.parentElement;
    const seen = all(group, 'img.zoom').filter(one => one.getClientRects().length);
    enlarge(seen, Math.max(0, seen.indexOf(picture)));
  };
  for (const picture of all(document, 'img.zoom').filter(one => !one.closest('.scale'))) {
    picture.tabIndex = 0;
    picture.setAttribute('role', 'button');
    picture.setAttribute('aria-label', `${picture.alt}: see it large`);
    picture.addEventListener('click', () => open(picture));
    picture.addEventListener('keydown', event => {
      if (event.key !== 'Enter') return;
      event.preventDefault();
      open(picture);
    });
  }
})();

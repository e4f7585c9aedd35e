// Keeps an open page current, and ties pictures to the table. Everything on the page can
// be read without it.
'use strict';
(() => {
  const body = document.body, main = document.getElementById('main'), live = document.getElementById('live');
  const phone = 340, widest = 1120, step = 20;
  let busy = false, again = false, source = null, timer = 0, at = location.href;

  // Pictures are drawn for the width of the page, so that their text keeps its size.
  function width() {
    const edge = innerWidth <= 640 ? 38 : 70;
    const w = Math.max(phone, Math.min(widest, main.clientWidth - edge));
    return Math.floor(w / step) * step;
  }
  function keepWidth() {
    document.cookie = 'fantasia_width=' + width() + '; path=/ui/; SameSite=Strict; Max-Age=31536000';
    return width() !== Number(body.dataset.width);
  }

  function tell(text, late) {
    live.hidden = false;
    live.classList.toggle('late', late);
    if (live.textContent !== text) live.textContent = text;
  }

  // refresh asks for the page again and takes over the parts that have changed.
  async function refresh(url = at, whole = false) {
    if (busy) { again = true; return; }
    busy = true;
    try {
      const answer = await fetch(url, {headers: {Accept: 'text/html'}, signal: AbortSignal.timeout(20000)});
      if (answer.status === 401) { location.reload(); return; }
      if (!answer.ok) throw new Error(answer.status);
      const page = new DOMParser().parseFromString(await answer.text(), 'text/html');
      if (whole) take(main, page.getElementById('main')); else update(page);
      body.dataset.width = page.body.dataset.width;
      const every = Number(page.body.dataset.poll);
      if (every !== Number(body.dataset.poll)) { body.dataset.poll = every; poll(); }
      if (body.dataset.poll !== '0') tell('live', false);
    } catch {
      tell('no answer from the server', true);
    } finally {
      busy = false;
      if (again) { again = false; refresh(); }
    }
  }

  function update(page) {
    const old = new Map([...document.querySelectorAll('[data-live]')].map(e => [e.id, e]));
    const fresh = [...page.querySelectorAll('[data-live]')];
    // A panel that is new or gone changes the order: then all panels are taken over.
    const ids = list => [...list].map(e => e.id).join();
    const outer = '.panels:not([data-live] *)';
    const panels = [document.querySelector(outer), page.querySelector(outer)];
    if (panels[0] && panels[1] && ids(panels[0].children) !== ids(panels[1].children)) take(panels[0], panels[1]);
    for (const e of fresh) {
      const mine = old.get(e.id);
      if (!mine || !mine.isConnected) continue;
      if (mine.className !== e.className) mine.className = e.className;
      if (mine.innerHTML !== e.innerHTML) take(mine, e);
    }
    light();
  }

  // take replaces the children of an element, and keeps the focus and what is unfolded.
  function take(mine, fresh) {
    const active = document.activeElement, inside = mine.contains(active) && active !== mine;
    const name = e => e.id ? '#' + CSS.escape(e.id) : e.getAttribute('href') ? 'a[href="' + CSS.escape(e.getAttribute('href')) + '"]' : '';
    const focus = inside ? name(active) : '';
    const open = [...mine.querySelectorAll('details')].map(d => d.open);
    mine.replaceChildren(...document.adoptNode(fresh).childNodes);
    mine.querySelectorAll('details').forEach((d, i) => { if (open[i]) d.open = true; });
    if (focus) mine.querySelector(focus)?.focus({preventScroll: true});
  }

  // poll asks again from time to time where no stream tells of changes.
  function poll() {
    clearInterval(timer);
    const every = Number(body.dataset.poll);
    const streaming = source && source.readyState === EventSource.OPEN && every > 1;
    if (every && !streaming && !document.hidden) timer = setInterval(refresh, every * 1000);
  }

  function listen() {
    if (source) { source.close(); source = null; }
    if (document.hidden) { poll(); return; }
    if (body.dataset.events) {
      source = new EventSource(body.dataset.events);
      source.addEventListener('open', poll);
      source.addEventListener('change', () => refresh());
      source.addEventListener('error', poll);
    }
    poll();
  }

  // Marks of the same trial are lit together; a click opens the trial.
  let lit = '';
  function light() {
    document.querySelectorAll('.lit').forEach(e => e.classList.remove('lit'));
    if (lit) document.querySelectorAll('[data-trial="' + lit + '"]').forEach(e => e.classList.add('lit'));
  }
  main.addEventListener('pointerover', event => {
    const e = event.target.closest('[data-trial]'), trial = e ? e.dataset.trial : '';
    if (trial !== lit) { lit = trial; light(); }
  });
  main.addEventListener('click', event => {
    const e = event.target.closest('.picture [data-trial]');
    const base = location.pathname.match(/^\/ui\/studies\/[^/]+/);
    if (e && base && !/\/trials\//.test(location.pathname)) location.assign(base[0] + '/trials/' + e.dataset.trial);
  });

  // Forms that filter apply themselves; empty fields are left out of the address.
  function go(form) {
    const q = new URLSearchParams();
    for (const [key, value] of new FormData(form)) if (value !== '' && !(key === 'sort' && value === '-trial')) q.append(key, value);
    show(location.pathname + (q.size ? '?' + q : ''));
  }
  async function show(url) {
    history.pushState(null, '', url);
    at = location.href;
    await refresh(at, true);
    light();
  }
  main.addEventListener('submit', event => {
    if (!event.target.matches('form[data-auto]')) return;
    event.preventDefault();
    go(event.target);
  });
  main.addEventListener('change', event => {
    const form = event.target.closest('form[data-auto]');
    if (form && event.target.matches('select, input[type=checkbox]')) go(form);
  });
  addEventListener('popstate', () => { at = location.href; refresh(at, true); });

  // A drag along an axis of parallel coordinates sets the range of its parameter.
  let drag = null;
  function value(axis, x) {
    const d = axis.dataset, share = Math.max(0, Math.min(1, (x - d.left) / (d.right - d.left)));
    const low = Number(d.low), high = Number(d.high);
    const logit = p => Math.log(p / (1 - p));
    switch (d.scale) {
    case 'log': return low * Math.pow(high / low, share);
    case 'logit': return 1 / (1 + Math.exp(-(logit(low) + share * (logit(high) - logit(low)))));
    default: return low + share * (high - low);
    }
  }
  function place(event) {
    const svg = drag.axis.ownerSVGElement;
    return new DOMPoint(event.clientX, event.clientY).matrixTransform(svg.getScreenCTM().inverse()).x;
  }
  main.addEventListener('pointerdown', event => {
    const axis = event.target.closest('.axis-hit');
    if (!axis || event.button) return;
    event.preventDefault();
    const rect = document.createElementNS('http://www.w3.org/2000/svg', 'rect');
    drag = {axis, rect};
    drag.from = place(event);
    rect.setAttribute('class', 'brush');
    rect.setAttribute('y', axis.getAttribute('y'));
    rect.setAttribute('height', axis.getAttribute('height'));
    axis.parentNode.append(rect);
    axis.setPointerCapture(event.pointerId);
  });
  main.addEventListener('pointermove', event => {
    if (!drag) return;
    const to = place(event);
    drag.to = to;
    drag.rect.setAttribute('x', Math.min(drag.from, to));
    drag.rect.setAttribute('width', Math.abs(to - drag.from));
  });
  main.addEventListener('pointerup', () => {
    if (!drag) return;
    const {axis, rect, from, to} = drag;
    drag = null;
    rect.remove();
    const q = new URLSearchParams(location.search), key = axis.dataset.key;
    q.delete(key);
    q.delete('page');
    if (to !== undefined && Math.abs(to - from) > 4) {
      const low = value(axis, Math.min(from, to)), high = value(axis, Math.max(from, to));
      if (axis.dataset.levels) {
        const levels = JSON.parse(axis.dataset.levels);
        levels.forEach((level, i) => { if (i >= low && i <= high) q.append(key, level); });
      } else {
        // An end of the axis leaves the range open, so that what lies beyond is in it.
        const d = axis.dataset, ends = [Math.min(from, to) > Number(d.left) + 1, Math.max(from, to) < Number(d.right) - 1];
        const range = (ends[0] ? Number(low.toPrecision(4)) : '') + '..' + (ends[1] ? Number(high.toPrecision(4)) : '');
        if (range !== '..') q.set(key, range);
      }
    }
    show(location.pathname + (q.size ? '?' + q : ''));
  });

  // The log of a running trial goes on below what the page holds.
  function follow() {
    const log = document.querySelector('[data-log]');
    if (!log) return;
    const lines = new EventSource(log.dataset.log);
    let first = true;
    lines.addEventListener('open', () => { first = true; });
    lines.addEventListener('log', event => {
      if (first) { log.textContent = ''; first = false; } // each stream begins with the last lines
      const end = log.scrollTop + log.clientHeight >= log.scrollHeight - 4;
      log.append(event.data);
      if (log.textContent.length > 400000) log.textContent = log.textContent.slice(-200000);
      log.hidden = false;
      if (end) log.scrollTop = log.scrollHeight;
    });
    lines.addEventListener('end', () => { lines.close(); refresh(); });
    addEventListener('pagehide', () => lines.close());
  }

  document.addEventListener('visibilitychange', () => { if (!document.hidden) refresh(); listen(); });
  addEventListener('resize', () => { if (keepWidth()) { clearTimeout(drag?.later); setTimeout(() => refresh(), 300); } });
  if (keepWidth() && document.querySelector('.picture')) refresh();
  listen();
  follow();
})();

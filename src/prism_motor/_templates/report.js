for (const chart of document.querySelectorAll('.chart')) {
  const data = JSON.parse(chart.querySelector('script').textContent);
  const svg = chart.querySelector('svg'), cursor = chart.querySelector('.cursor');
  const tip = chart.querySelector('.tip');
  const hide = () => { cursor.style.visibility = tip.style.visibility = 'hidden'; };
  const show = (event) => {
    const box = svg.getBoundingClientRect(), scale = data.width / box.width;
    const at = (event.clientX - box.left) * scale;
    const x = data.low + (at - data.left) / (data.right - data.left) * (data.high - data.low);
    const lines = [];
    for (const curve of data.curves) {
      if (x < curve.x[0] || x > curve.x[1]) continue;
      const last = curve.mean.length - 1;
      const i = Math.round((x - curve.x[0]) / (curve.x[1] - curve.x[0]) * last);
      const spread = curve.low ? ` [${curve.low[i]}, ${curve.high[i]}]` : '';
      lines.push([curve.name, curve.hue, `${curve.mean[i]}${spread}`]);
    }
    if (!lines.length) { hide(); return; }
    cursor.setAttribute('x1', at); cursor.setAttribute('x2', at);
    tip.replaceChildren(document.createTextNode(`${x.toPrecision(3)} ${data.unit}`));
    for (const [name, hue, text] of lines) {
      const row = document.createElement('div'), label = document.createElement('b');
      label.className = 'arm'; label.style.setProperty('--hue', hue);
      label.style.color = 'var(--shade)'; label.textContent = `${name} `;
      row.append(label, text); tip.append(row);
    }
    const left = (event.clientX - box.left) + 14, room = box.width - tip.offsetWidth;
    tip.style.left = `${Math.max(0, left > room ? left - tip.offsetWidth - 28 : left)}px`;
    cursor.style.visibility = tip.style.visibility = 'visible';
  };
  svg.addEventListener('pointermove', show);
  svg.addEventListener('pointerdown', show);
  svg.addEventListener('pointerleave', hide);
}
if (!matchMedia('(prefers-reduced-motion: reduce)').matches) {
  const seen = new IntersectionObserver((entries) => {
    for (const one of entries) {
      if (one.isIntersecting) one.target.play().catch(() => {}); else one.target.pause();
    }
  }, { threshold: 0.5 });
  for (const film of document.querySelectorAll('video')) seen.observe(film);
}

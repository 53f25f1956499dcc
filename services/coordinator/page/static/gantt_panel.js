// The pipeline timeline: fetches traces, chooses the step and the window of time, shows what a cell was.
import {getTrace, traceFile} from './api.js';
import {h, part, setAttribute, setText, updateTable} from './dom.js';
import {bytes, decimal, integer, num, percent, span as spanText} from './format.js';
import {drawArrows, drawGantt} from './gantt_draw.js';
import {stepsOf} from './gantt_model.js';
import {hasBubble, isHeld} from './job_facts.js';
import {idealStep} from './ideal.js';
import {phaseFill, phaseOf, swatch} from './phases.js';

const STEPS_LIVE = 3;     // a trace is large: while it moves on, only the newest; an evaluation counts as one
const STEPS_PAUSED = 12;  // to look around in
const STEPS_KEPT = 8;
const DOWNLOAD_STEPS = 50;
const POLL_MS = 2500;
const ZOOM = 1.6;
const NARROW = 600;
const LEGEND = ['forward', 'recompute', 'backward', 'optimizer', 'bubble', 'receive_wait', 'send', 'data_wait', 'idle'];

export class GanttPanel {
  constructor(root, store, jobId) {
    this.root = root;
    this.store = store;
    this.jobId = jobId;
    this.steps = [];
    this.chosen = null;       // a step number; null: the newest
    this.paused = false;
    this.view = null;         // {begin, end} in milliseconds; null: all
    this.build(part(root, 'gantt'));
    part(root, 'trace-link').href = traceFile(jobId, DOWNLOAD_STEPS);
    this.visible = false;
    this.observer = new IntersectionObserver((entries) => {
      this.visible = entries[entries.length - 1].isIntersecting;
      if (this.visible && this.steps.length === 0) this.poll();
    });
    this.observer.observe(part(root, 'gantt'));
    this.resize = new ResizeObserver(() => this.draw());
    this.resize.observe(this.chart);
    this.timer = setInterval(() => this.tick(), POLL_MS);
  }

  build(host) {
    this.pauseButton = h('button', {class: 'button quiet', type: 'button', 'aria-pressed': 'false', onclick: () => this.setPaused(!this.paused)}, 'Pause');
    this.slider = h('input', {type: 'range', min: 0, max: 0, value: 0, 'aria-label': 'Step', oninput: () => this.choose(Number(this.slider.value))});
    this.stepText = h('output', {class: 'gantt-step'}, '–');
    const zoom = (label, hint, run) => h('button', {class: 'button quiet square', type: 'button', 'aria-label': hint, title: hint, onclick: run}, label);
    this.linksCheck = h('input', {type: 'checkbox', checked: true, onchange: () => this.draw()});
    this.chart = h('div', {class: 'gantt-host', 'data-gantt': 'measured'});
    this.ideal = h('div', {class: 'gantt-host', 'data-gantt': 'ideal'});
    this.idealNote = h('span', {class: 'note'});
    this.tip = h('div', {class: 'tip', 'aria-hidden': 'true'});
    this.problem = h('p', {class: 'note problem'});
    host.append(
      h('div', {class: 'gantt-bar'}, this.pauseButton,
        h('label', {class: 'gantt-slider'}, 'Step', this.slider, this.stepText),
        h('span', {class: 'gantt-zoom', role: 'group', 'aria-label': 'Zoom'},
          zoom('−', 'Zoom out', () => this.zoom(1 / ZOOM)), zoom('+', 'Zoom in', () => this.zoom(ZOOM)),
          zoom('‹', 'Earlier', () => this.pan(-0.25)), zoom('›', 'Later', () => this.pan(0.25)),
          h('button', {class: 'button quiet', type: 'button', onclick: () => this.setView(null)}, 'Fit')),
        h('label', {class: 'check'}, this.linksCheck, 'Links')),
      h('div', {class: 'gantt-frame'}, h('h3', {}, 'Measured'), this.chart),
      h('div', {class: 'gantt-frame'}, h('h3', {}, 'Ideal', this.idealNote), this.ideal),
      this.problem, this.tip,
      h('ul', {class: 'legend', 'aria-label': 'Pieces of the timeline'},
        LEGEND.map((name) => h('li', {}, swatch(phaseFill(name)), `${phaseOf(name).letter}  ${phaseOf(name).title}`)),
        h('li', {}, swatch({class: 'track track-send-activation'}), 'activation, tied value'), h('li', {}, swatch({class: 'track track-send-gradient'}), 'gradient, tied gradient')),
      h('details', {ontoggle: () => this.table()}, h('summary', {}, 'Table'),
        h('div', {class: 'scroll tall', tabindex: 0, role: 'region', 'aria-label': 'Pieces of the step', 'data-part': 'gantt-table'})));
    for (const chart of [this.chart, this.ideal]) this.listen(chart);
  }

  listen(chart) {
    chart.addEventListener('pointerover', (event) => this.point(chart, event.target.closest('.gantt-cell')));
    chart.addEventListener('pointerleave', () => this.point(chart, null));
    chart.addEventListener('focusin', (event) => this.point(chart, event.target.closest('.gantt-cell')));
    chart.addEventListener('focusout', () => this.point(chart, null));
    chart.addEventListener('keydown', (event) => this.key(chart, event));
    chart.addEventListener('wheel', (event) => {
      if (!event.ctrlKey) return;  // the wheel alone scrolls the page
      event.preventDefault();
      this.zoom(event.deltaY < 0 ? 1.2 : 1 / 1.2);
    }, {passive: false});
    chart.addEventListener('pointerdown', (event) => this.startDrag(chart, event));
  }

  update() {
    const job = this.store.job;
    const expected = this.quiet ? 'quiet' : 'running';
    if (job && this.lastState !== expected) {
      this.lastState = expected;
      this.poll();
    }
    // The step's record may come after its trace.
    if (this.step && this.drawn) this.notes(this.step);
  }

  tick() {
    const running = this.store.job?.state === 'JOB_STATE_RUNNING';
    if (this.visible && running && !this.paused && !document.hidden) this.poll();
  }

  async poll() {
    if (this.polling || !this.store.job) return;
    this.polling = true;
    const whilePaused = this.paused;
    try {
      const trace = await getTrace(this.jobId, whilePaused ? STEPS_PAUSED : STEPS_LIVE);
      if (this.paused && !whilePaused && this.steps.length > 0) return;
      const {steps, errors} = stepsOf(trace, num(this.store.job.spec?.training?.micro_batches) || 1);
      this.keep(steps);
      // Who is gone after the end is no problem; why there is no timeline then is said in its place.
      setText(this.problem, this.quiet ? '' : errors.join('; '));
      this.draw();
    } catch (error) {
      setText(this.problem, this.quiet ? '' : `No trace: ${error.message}`);
      this.draw();
    } finally {
      this.polling = false;
    }
  }

  /** Adds steps to those at hand; a step that is there stays, so that its drawing and its cells do. */
  keep(steps) {
    // The rings of stages that stayed also hold steps of an older placement, where they had other places.
    const {placedAt} = this.store.series;
    if (!this.paused) this.steps = this.steps.filter((step) => step.endUnixSeconds >= placedAt);
    steps = steps.filter((step) => step.endUnixSeconds >= placedAt);
    if (steps.length === 0) return;
    const newest = steps[steps.length - 1].step;
    const known = new Set(this.steps.map((step) => step.step));
    // After a recovery the steps begin again further back.
    const old = this.steps.filter((step) => step.step <= newest || this.paused);
    const all = [...old, ...steps.filter((step) => !known.has(step.step))].sort((a, b) => a.step - b.step);
    this.steps = all.filter((step, index) => index >= all.length - STEPS_KEPT || step.step === this.chosen);
  }

  setPaused(paused) {
    if (paused === this.paused) return;
    this.paused = paused;
    setText(this.pauseButton, paused ? 'Resume' : 'Pause');
    setAttribute(this.pauseButton, 'aria-pressed', paused);
    this.chosen = paused ? this.step?.step ?? null : null;
    if (!paused) this.view = null;
    this.poll();
    this.draw();
  }

  choose(index) {
    const step = this.steps[index]?.step ?? null;
    this.setPaused(true);
    this.chosen = step;
    this.view = null;
    this.draw();
  }

  get step() {
    return this.steps.find((step) => step.step === this.chosen) || this.steps[this.steps.length - 1];
  }

  /** The whole step, or the whole ideal one if that is longer. */
  get whole() {
    return {begin: 0, end: Math.max(this.step.length, idealStep(this.step).length, 1e-3) * 1.005};
  }

  setView(view) {
    if (!this.step) return;
    const whole = this.whole;
    if (view && view.end - view.begin < whole.end - 1e-6) {
      const size = Math.max(view.end - view.begin, whole.end / 2000);
      const begin = Math.min(Math.max(0, view.begin), whole.end - size);
      this.setPaused(true);  // a window of one step says nothing about the next
      this.view = {begin, end: begin + size};
    } else {
      this.view = null;
    }
    this.draw();
  }

  zoom(factor) {
    if (!this.step) return;
    const view = this.view || this.whole;
    const middle = (view.begin + view.end) / 2;
    const half = (view.end - view.begin) / 2 / factor;
    this.setView({begin: middle - half, end: middle + half});
  }

  pan(share) {
    if (!this.view) return;
    const by = (this.view.end - this.view.begin) * share;
    this.setView({begin: this.view.begin + by, end: this.view.end + by});
  }

  startDrag(chart, event) {
    if (!this.view || event.button !== 0) return;
    const view = this.view;
    const scale = (view.end - view.begin) / chart.clientWidth;
    const move = (next) => this.setView({begin: view.begin - (next.clientX - event.clientX) * scale,
                                         end: view.end - (next.clientX - event.clientX) * scale});
    const up = () => {
      removeEventListener('pointermove', move);
      removeEventListener('pointerup', up);
    };
    addEventListener('pointermove', move);
    addEventListener('pointerup', up);
  }

  draw() {
    const step = this.step;
    const width = Math.floor(this.chart.clientWidth);
    if (width === 0) return;
    this.updateControls(step);
    this.root.querySelector('[data-section="timeline"]').toggleAttribute('data-untraced', !step && this.quiet);
    if (!step) {
      if (!this.chart.querySelector('p')) this.chart.replaceChildren(h('p', {class: 'note'}));
      this.ideal.replaceChildren();
      this.drawn = this.drawnIdeal = this.drawnKey = null;
      setText(part(this.root, 'gantt-note'), '');
      setText(this.idealNote, '');
      setText(this.chart.firstChild, this.whyEmpty());
      return;
    }
    const key = `${step.step}|${step.length}|${width}|${this.linksCheck.checked}|${JSON.stringify(this.view)}`;
    if (key === this.drawnKey) return;
    this.drawnKey = key;
    const focused = document.activeElement?.closest?.('.gantt-cell')?.dataset;
    const ideal = idealStep(step);
    const view = this.view || this.whole;
    const left = width < NARROW ? 18 : 64;
    const describe = (lane, cell) => this.describe(lane, cell);
    this.drawn = drawGantt(step, view, {width, left, links: this.linksCheck.checked, describe, label: `Step ${step.step} as measured`});
    this.drawnIdeal = drawGantt(ideal, view, {width, left, links: false, describe, label: 'Ideal schedule'});
    this.chart.replaceChildren(this.drawn.svg);
    this.ideal.replaceChildren(this.drawnIdeal.svg);
    for (const drawn of [this.drawn, this.drawnIdeal]) if (drawn.cells[0]) setAttribute(drawn.cells[0].group, 'tabindex', 0);
    if (focused) this.refocus(focused);
    this.idealShown = ideal;
    this.notes(step);
    this.table();
  }

  /** Nothing will be drawn: the job is over, or nobody works for it. */
  get quiet() {
    return this.store.ended || isHeld(this.store.job);
  }

  whyEmpty() {
    const {job, ended} = this.store;
    if (isHeld(job)) return 'No timeline: the job was interrupted, and no stage works for it.';
    if (!ended) return num(job?.recoveries) > 0 ? 'Waiting for the first complete step after the recovery.' : 'Waiting for the first complete step.';
    if (num(job.step) === 0) return 'The job ended before its first step.';
    return 'No timeline: stages keep the trace of their last steps only while they run, and none holds one of this job any more. ' +
      'stagecoach local --trace FILE writes one at the end of a run, stagecoach trace JOB while it runs.';
  }

  refocus(data) {
    const same = this.drawn.cells.find(({group}) => group.dataset.phase === data.phase && group.dataset.stage === data.stage &&
                                                    group.dataset.cell === data.cell && group.dataset.microBatch === data.microBatch);
    if (same) this.focus(this.drawn, same);
  }

  updateControls(step) {
    const index = step ? this.steps.indexOf(step) : 0;
    setAttribute(this.slider, 'max', Math.max(0, this.steps.length - 1));
    this.slider.value = index;
    this.slider.disabled = this.steps.length < 2;
    setText(this.stepText, step ? integer(step.step) : '–');
    setAttribute(this.slider, 'aria-valuetext', step ? `step ${step.step}` : 'none');
  }

  notes(step) {
    const ideal = this.idealShown;
    const record = this.store.series.steps.find((point) => point.step === step.step);
    const error = Math.max(...step.lanes.map((lane) => lane.clockError));
    const lanes = step.lanes.length;
    const bubble = lanes > 1 && hasBubble(this.store.job);
    setText(part(this.root, 'gantt-note'), [`step ${integer(step.step)}`, `${decimal(step.length, 1)} ms`,
      record && bubble ? `bubble ${percent(record.bubble)}` : '', error > 0 ? `clocks aligned within ±${decimal(error, 2)} ms` : ''].filter(Boolean).join(' · '));
    // By the coordinator's schedule.
    const schedules = num(this.store.job?.bubble_ideal);
    setText(this.idealNote, `equal cells, free links: ${decimal(ideal.length, 1)} ms` +
      (bubble ? `, bubble ${percent(ideal.bubble)}` : '') + (bubble && schedules > 0 ? `; forwards and backwards only: ${percent(schedules)}` : ''));
  }

  describe(lane, cell) {
    const title = lane.sends.includes(cell) ? `Send of ${cell.name}` : lane.receives.includes(cell) ? `Receive of ${cell.name}` : cell.phase.title;
    const peer = cell.peer ? ` ${cell.peer}` : '';
    const micro = cell.microBatch >= 0 ? `, micro-batch ${cell.microBatch}` : '';
    const size = cell.bytes > 0 ? `, ${bytes(cell.bytes)}` : '';
    const network = cell.cell >= 0 && lane.cells.includes(cell) ? `, cell ${cell.cell}` : '';
    return `Stage ${lane.stage}: ${title}${peer}${network}${micro}, ${spanText((cell.end - cell.begin) / 1e3)} from ${decimal(cell.begin, 2)} to ${decimal(cell.end, 2)} ms${size}`;
  }

  /** Detail of a cell, its micro-batch lifted out of the rest, arrows along its way. */
  point(chart, group) {
    const drawn = chart === this.chart ? this.drawn : this.drawnIdeal;
    if (!drawn) return;
    drawn.svg.querySelector('.gantt-arrows')?.remove();
    for (const one of drawn.cells) one.group.classList.remove('dim');
    const entry = group && drawn.cells[Number(group.dataset.index)];
    this.tip.classList.toggle('shown', Boolean(entry));
    if (!entry) return;
    const {cell, lane} = entry;
    if (cell.microBatch >= 0) {
      for (const one of drawn.cells) one.group.classList.toggle('dim', one.cell.microBatch !== cell.microBatch);
      if (chart === this.chart && this.linksCheck.checked) drawn.svg.append(drawArrows(drawn, this.step, cell.microBatch));
    }
    setText(this.tip, this.describe(lane, cell));
    const host = this.tip.offsetParent.getBoundingClientRect();
    const box = chart.getBoundingClientRect();
    const room = host.width - this.tip.offsetWidth;
    this.tip.style.left = `${Math.max(0, Math.min(room, box.left - host.left + entry.x - this.tip.offsetWidth / 2))}px`;
    this.tip.style.top = `${box.top - host.top + entry.y + 8}px`;
  }

  focus(drawn, entry) {
    for (const one of drawn.cells) setAttribute(one.group, 'tabindex', one === entry ? 0 : -1);
    entry.group.focus({preventScroll: false});
  }

  /** Arrows walk over cells; + − 0 zoom; , . move the window. */
  key(chart, event) {
    const zooms = {'+': () => this.zoom(ZOOM), '=': () => this.zoom(ZOOM), '-': () => this.zoom(1 / ZOOM), '0': () => this.setView(null),
                   ',': () => this.pan(-0.25), '.': () => this.pan(0.25)};
    const drawn = chart === this.chart ? this.drawn : this.drawnIdeal;
    const group = event.target.closest('.gantt-cell');
    if (event.ctrlKey || event.metaKey || event.altKey || !drawn || !group) return;
    if (zooms[event.key]) {
      zooms[event.key]();
      event.preventDefault();
      return;
    }
    const at = Number(group.dataset.index);
    const here = drawn.cells[at];
    let next = null;
    if (event.key === 'ArrowRight') next = drawn.cells[at + 1];
    if (event.key === 'ArrowLeft') next = drawn.cells[at - 1];
    if (event.key === 'ArrowDown' || event.key === 'ArrowUp') {
      const by = event.key === 'ArrowDown' ? 1 : -1;
      const lane = drawn.cells.filter((entry) => entry.lane.stage === here.lane.stage + by && entry.lane.cells.includes(entry.cell));
      next = lane.reduce((best, entry) => (!best || Math.abs(entry.x - here.x) < Math.abs(best.x - here.x) ? entry : best), null);
    }
    if (next) {
      event.preventDefault();
      this.setPaused(true);
      this.focus(drawn, next);
    }
  }

  table() {
    const host = part(this.root, 'gantt-table');
    if (!host.closest('details').open || !this.step) return;
    const rows = [];
    for (const lane of this.step.lanes) {
      for (const [track, list] of [['compute', lane.cells], ['send', lane.sends], ['receive', lane.receives]]) {
        for (const cell of list) {
          rows.push([String(lane.stage), track, track === 'compute' ? cell.phase.title : `${cell.name} ${cell.peer}`,
                     cell.cell >= 0 ? String(cell.cell) : '–', cell.microBatch >= 0 ? String(cell.microBatch) : '–', decimal(cell.begin, 3), decimal(cell.end - cell.begin, 3),
                     cell.bytes > 0 ? bytes(cell.bytes) : '–']);
        }
      }
    }
    updateTable(host, `Pieces of step ${this.step.step}`, [{title: 'Stage'}, {title: 'Track'}, {title: 'What'},
      {title: 'Cell', number: true}, {title: 'Micro-batch', number: true}, {title: 'Begin (ms)', number: true}, {title: 'Length (ms)', number: true},
      {title: 'Bytes', number: true}], rows, 'No step.');
  }

  close() {
    clearInterval(this.timer);
    this.observer.disconnect();
    this.resize.disconnect();
  }
}

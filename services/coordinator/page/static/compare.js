// A second job's records beside those of the job looked at: picked from the list, read once, and again while it runs.
import {getJob, getRecords} from './api.js';
import {h, setText} from './dom.js';
import {decimal} from './format.js';
import {hasEnded, stateOf} from './job_facts.js';
import {Series} from './series.js';

const POLL_MS = 3000;

export class Comparison {
  /** Calls changed() when the other job or its records did. */
  constructor(store, jobId, changed) {
    this.store = store;
    this.jobId = jobId;
    this.changed = changed;
    this.id = '';         // '': none
    this.job = null;
    this.series = new Series();
    this.turn = 0;        // rises with every choice, so that late answers are known as such
    this.select = h('select', {onchange: () => this.choose(this.select.value)}, h('option', {value: ''}, 'no other job'));
    this.problem = h('span', {class: 'note problem', role: 'status'});
    this.control = h('label', {class: 'check compare'}, 'Compare with', this.select, this.problem);
  }

  /** There is something to draw. */
  get shown() {
    return this.id !== '' && this.job !== null;
  }

  update() {
    const others = (this.store.jobs || []).filter((job) => job.id !== this.jobId);
    const named = others.map((job) => [job.id, `${job.id} · ${stateOf(job).toLowerCase()}, loss ${decimal(job.loss, 3)}`]);
    // Chosen by the address before the list was there.
    if (this.id !== '' && !named.some(([id]) => id === this.id)) named.push([this.id, this.id]);
    // A running job's loss moves; the list is made anew only where the choice does.
    const key = named.map(([id]) => id).join('\n');
    if (key === this.key) return;
    this.key = key;
    this.select.replaceChildren(h('option', {value: ''}, named.length > 0 ? 'no other job' : 'there is no other job'),
                                ...named.map(([value, text]) => h('option', {value}, text)));
    this.select.value = this.id;
    this.select.disabled = named.length === 0;
  }

  /** By hand. The address can be kept and sent; it is no step back. */
  choose(id) {
    this.take(id);
    const base = `#/jobs/${encodeURIComponent(this.jobId)}`;
    history.replaceState(null, '', `${base}${this.suffix}`);
  }

  /** What an address ends with that shows this comparison. */
  get suffix() {
    return this.id ? `/with/${encodeURIComponent(this.id)}` : '';
  }

  /** By the address, which is left as it is. */
  take(id) {
    this.turn += 1;
    clearTimeout(this.timer);
    this.id = id === this.jobId ? '' : id;
    this.job = null;
    this.series = new Series();
    this.update();
    this.select.value = this.id;
    setText(this.problem, '');
    this.changed();
    this.store.changed();  // links to the sections keep the comparison
    if (this.id !== '') this.read(this.turn);
  }

  async read(turn) {
    try {
      const job = await getJob(this.id);
      for (let complete = false; !complete;) {
        const page = await getRecords(this.id, this.series.next);
        if (turn !== this.turn) return;
        this.series.add(page.records || []);
        complete = page.complete !== false || (page.records || []).length === 0;
      }
      if (turn !== this.turn) return;
      this.job = job;
      setText(this.problem, '');
    } catch (error) {
      if (turn !== this.turn) return;
      setText(this.problem, `${this.id}: ${error.message}`);
      if (error.code === 'NOT_FOUND') return;
    }
    this.changed();
    if (!hasEnded(this.job)) this.timer = setTimeout(() => this.read(turn), POLL_MS);
  }

  close() {
    this.turn += 1;
    clearTimeout(this.timer);
  }
}

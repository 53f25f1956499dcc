// The newest log lines of the coordinator and the job's stages.
import {getLogs} from './api.js';
import {h, part} from './dom.js';
import {clock} from './format.js';
import {placeOf} from './job_facts.js';

const POLL_MS = 3000;
const TAIL = 200;

export class Logs {
  constructor(root, store, jobId) {
    this.store = store;
    this.jobId = jobId;
    this.host = part(root, 'logs');
    this.stage = '';
    this.follow = true;
    this.select = h('select', {'aria-label': 'Lines of', onchange: () => {
      this.stage = this.select.value;
      this.poll();
    }}, h('option', {value: ''}, 'All servers'));
    this.check = h('input', {type: 'checkbox', checked: true, onchange: () => {
      this.follow = this.check.checked;
      if (this.follow) this.poll();
    }});
    part(root, 'log-controls').append(h('label', {class: 'check'}, this.check, 'Follow'), this.select);
    this.key = '';
    // Only while somebody can see it: reading logs asks every stage.
    this.visible = false;
    this.observer = new IntersectionObserver((entries) => {
      const was = this.visible;
      this.visible = entries[entries.length - 1].isIntersecting;
      if (this.visible && !was) this.poll();
    });
    this.observer.observe(this.host);
    this.timer = setInterval(() => {
      if (this.visible && this.follow && !document.hidden) this.poll();
    }, POLL_MS);
  }

  update() {
    const stages = this.store.job?.stages || [];
    const named = stages.map((stage, index) => [String(placeOf(stage, index)), stage.name]);
    const key = named.flat().join();
    if (this.named === key) return;
    this.named = key;
    while (this.select.options.length > 1) this.select.remove(1);
    for (const [place, name] of named) this.select.append(h('option', {value: place}, `Stage ${place} (${name})`));
    if (!named.some(([place]) => place === this.stage)) this.stage = '';
    this.select.value = this.stage;
  }

  async poll() {
    const asked = this.stage;
    try {
      const reply = await getLogs(this.jobId, asked, TAIL);
      if (asked === this.stage) this.show(reply.lines || [], reply.unreachable || []);
    } catch (error) {
      this.show([], [error.message]);
    }
  }

  show(lines, unreachable) {
    const last = lines[lines.length - 1];
    const key = `${this.stage}|${lines.length}|${last ? `${last.source}${last.number}${last.unix_seconds}` : ''}|${unreachable.join()}`;
    if (key === this.key) return;
    this.key = key;
    const stuck = this.host.scrollTop + this.host.clientHeight >= this.host.scrollHeight - 40;
    const rows = lines.map((line) => h('li', {'data-level': line.level},
      h('time', {}, clock(line.unix_seconds)), h('span', {class: 'log-level'}, line.level),
      h('span', {class: 'log-source'}, line.source), h('span', {class: 'log-text'}, line.message)));
    for (const name of unreachable) rows.push(h('li', {'data-level': 'error'}, h('span', {class: 'log-text'}, `not reached: ${name}`)));
    this.host.replaceChildren(rows.length > 0 ? h('ol', {class: 'lines'}, rows) : h('p', {class: 'note'}, 'No lines.'));
    if (stuck || this.first === undefined) this.host.scrollTop = this.host.scrollHeight;
    this.first = false;
  }

  close() {
    clearInterval(this.timer);
    this.observer.disconnect();
  }
}

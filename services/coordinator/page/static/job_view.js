// One job: its parts in the order in which questions come up.
import {CancelDialog} from './cancel.js';
import {updateClasses} from './classes.js';
import {Curves} from './curves.js';
import {h, part, setAttribute} from './dom.js';
import {Events} from './events.js';
import {updateFleet} from './fleet.js';
import {GanttPanel} from './gantt_panel.js';
import {updateLinks} from './links.js';
import {Logs} from './logs.js';
import {Settings} from './settings.js';
import {updateMemory} from './memory.js';
import {Pictures} from './pictures.js';
import {Strip} from './strip.js';
import {Summary} from './summary.js';

const SECTIONS = [['stages', 'Stages'], ['timeline', 'Timeline'], ['curves', 'Curves'], ['pictures', 'Pictures'], ['translations', 'Sentences'],
                  ['memory', 'Memory'], ['links', 'Links'], ['fleet', 'Fleet'], ['events', 'Events'], ['logs', 'Log']];

export class JobView {
  constructor(main, store, jobId) {
    this.store = store;
    this.root = main;
    this.jobId = jobId;
    main.replaceChildren(document.getElementById('job-view').content.cloneNode(true));
    this.links = SECTIONS.map(([name, title]) => [name, h('a', {onclick: () => this.scrollTo(name)}, title)]);
    part(main, 'sections').append(...this.links.map(([, link]) => link));
    this.cancel = new CancelDialog(part(main, 'cancel'), store, jobId);
    this.curves = new Curves(main, store, jobId);
    this.parts = [new Summary(main, store, jobId), new Settings(main, store), new Strip(main, store), new GanttPanel(main, store, jobId),
                  this.curves, new Pictures(main, store, jobId), new Events(main, store), new Logs(main, store, jobId), this.cancel];
  }

  update() {
    for (const one of this.parts) one.update();
    const base = `#/jobs/${encodeURIComponent(this.jobId)}`;
    for (const [name, link] of this.links) {
      setAttribute(link, 'href', `${base}/${name}${this.curves.other.suffix}`);
      link.hidden = this.root.querySelector(`[data-section="${name}"]`).hidden;
    }
    updateClasses(this.root, this.store);
    updateMemory(this.root, this.store);
    updateLinks(this.root, this.store);
    const names = new Set((this.store.job?.stages || []).map((stage) => stage.name));
    // The job's own stages first, then those that could replace one.
    const mine = (info) => Number(names.has(info.stage?.name));
    const stages = [...(this.store.stages || [])].sort((a, b) => mine(b) - mine(a));
    updateFleet(this.root, this.store, stages);
  }

  themeChanged() {
    for (const one of this.parts) if (one.themeChanged) one.themeChanged();
  }

  compareWith(otherId) {
    this.curves.compareWith(otherId);
  }

  scrollTo(section) {
    const target = this.root.querySelector(`[data-section="${CSS.escape(section)}"]`);
    if (!target) return;
    const still = matchMedia('(prefers-reduced-motion: reduce)').matches;
    target.scrollIntoView({behavior: still ? 'auto' : 'smooth', block: 'start'});
  }

  close() {
    for (const one of this.parts) if (one.close) one.close();
  }
}

// Starts the page: routes by the address's hash, the live connection, the view that fits.
//   #/            jobs and stage servers
//   #/jobs/ID     one job;  #/jobs/ID/SECTION scrolls to a section of it
//   #/jobs/ID/with/OTHER     its curves over those of another job;  #/jobs/ID/SECTION/with/OTHER  likewise
// What the address does not say is not shown: without /with/ a job's curves stand alone.
import {h, setAttribute, setText} from './dom.js';
import {stateName} from './format.js';
import {totalSteps} from './job_facts.js';
import {JobView} from './job_view.js';
import {JobsView} from './jobs_view.js';
import {Live} from './live.js';
import {Store} from './store.js';

const store = new Store();
const live = new Live(store);
const main = document.getElementById('main');
let view = null;

function parseRoute() {
  const parts = location.hash.replace(/^#\/?/, '').split('/').map(decodeURIComponent);
  if (parts[0] !== 'jobs' || !parts[1]) return {job: null, section: null, other: ''};
  if (parts[2] === 'with') return {job: parts[1], section: 'curves', other: parts[3] || ''};
  return {job: parts[1], section: parts[2] || null, other: (parts[3] === 'with' && parts[4]) || ''};
}

function crumbs(job) {
  const host = document.getElementById('crumbs');
  const home = h('a', {href: '#/', 'aria-current': job ? null : 'page'}, 'Jobs');
  host.replaceChildren(...(job ? [home, h('span', {'aria-hidden': 'true'}, '/'),
                                  h('span', {class: 'crumb-job', 'aria-current': 'page'}, job)] : [home]));
}

function route() {
  const {job, section, other} = parseRoute();
  if (!view || view.jobId !== job) {
    if (view) view.close();
    crumbs(job);
    store.look(job);
    view = job ? new JobView(main, store, job) : new JobsView(main, store);
    view.jobId = job;
    live.start(job);
    if (!section) scrollTo(0, 0);
  }
  if (view.compareWith) view.compareWith(other);
  if (section && view.scrollTo) view.scrollTo(section);
}

const CONNECTION = {
  connecting: ['Connecting', 'waiting for the first answer'],
  live: ['Live', 'updates come as they happen'],
  polling: ['Polling', 'no stream at the moment: asking every 2 seconds'],
  lost: ['Disconnected', 'the coordinator does not answer; trying again'],
};

function showConnection() {
  const [text, hint] = CONNECTION[store.connection];
  const host = document.getElementById('connection');
  setAttribute(host, 'data-state', store.connection);
  setAttribute(host, 'title', hint);
  setText(document.getElementById('connection-text'), text);
}

let announced = '';
function announce() {
  const parts = [];
  if (store.connection === 'lost') parts.push('The coordinator does not answer.');
  if (store.job) {
    const detail = store.job.detail && store.job.detail !== stateName(store.job.state).toLowerCase() ? `, ${store.job.detail}` : '';
    parts.push(`Job ${store.job.id} is ${stateName(store.job.state).toLowerCase()}${detail}.`);
  }
  for (const info of store.stages || []) {
    if (info.state === 'lost') parts.push(`Stage server ${info.stage?.name} is lost.`);
  }
  const text = parts.join(' ');
  if (text !== announced) setText(document.getElementById('announcer'), text);
  announced = text;
}

function title() {
  const job = store.job;
  if (!job) return 'Stagecoach';
  const steps = totalSteps(job);
  const done = steps > 0 ? `${Math.floor(100 * Number(job.step) / steps)} % ` : '';
  return `${done}${job.spec?.name || job.id} · Stagecoach`;
}

function render() {
  showConnection();
  announce();
  if (document.title !== title()) document.title = title();
  const version = (store.stages || []).map((info) => info.stage?.version).find(Boolean);
  setText(document.getElementById('footer-text'), version ? `Stagecoach ${version}` : 'Stagecoach');
  if (view) view.update();
}

document.getElementById('skip').addEventListener('click', (event) => {
  event.preventDefault();  // the hash is the route
  main.focus();
  main.scrollIntoView();
});
document.addEventListener('themechange', () => view && view.themeChanged && view.themeChanged());
addEventListener('hashchange', route);
store.subscribe(render);
// Ages and the time left move on also when nothing arrives.
setInterval(() => store.changed(), 1000);
route();

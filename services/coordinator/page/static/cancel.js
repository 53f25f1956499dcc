// Asks before it cancels, and says what went wrong if it could not.
import {cancelJob} from './api.js';
import {setText} from './dom.js';
import {integer} from './format.js';
import {totalSteps} from './job_facts.js';

export class CancelDialog {
  constructor(button, store, jobId) {
    this.button = button;
    this.store = store;
    this.jobId = jobId;
    this.dialog = document.getElementById('cancel-dialog');
    this.confirm = document.getElementById('cancel-confirm');
    this.problem = document.getElementById('cancel-problem');
    this.onConfirm = () => this.send();
    this.confirm.addEventListener('click', this.onConfirm);
    button.addEventListener('click', () => this.open());
  }

  update() {
    this.button.hidden = !this.store.job || this.store.ended;
  }

  open() {
    const job = this.store.job;
    const saved = job.last_checkpoint_step === undefined ? 'There is no checkpoint yet: all its work is lost.'
      : `Its newest checkpoint is of step ${integer(job.last_checkpoint_step)}; later steps are lost.`;
    setText(document.getElementById('cancel-text'),
            `${this.jobId} has done ${integer(job.step)} of ${integer(totalSteps(job))} steps. ${saved}`);
    setText(this.problem, '');
    this.confirm.disabled = false;
    this.dialog.showModal();
  }

  async send() {
    this.confirm.disabled = true;
    try {
      this.store.setJob(await cancelJob(this.jobId));
      this.dialog.close();
    } catch (error) {
      setText(this.problem, `Not cancelled: ${error.message}`);
      this.confirm.disabled = false;
    }
  }

  close() {
    this.confirm.removeEventListener('click', this.onConfirm);
    if (this.dialog.open) this.dialog.close();
  }
}

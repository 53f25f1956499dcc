// Light or dark before the first paint, so that nothing flashes: a plain script in the head.
// The choice is kept in this browser; without one the system's preference holds.
(function () {
  const KEY = 'stagecoach-theme';
  const NEXT = {system: 'light', light: 'dark', dark: 'system'};
  let choice = 'system';
  try {
    choice = localStorage.getItem(KEY) || 'system';
  } catch (error) {
    // Storage may be forbidden; the system's preference is good enough then.
  }
  if (!(choice in NEXT)) choice = 'system';

  function apply() {
    if (choice === 'system') {
      delete document.documentElement.dataset.theme;
    } else {
      document.documentElement.dataset.theme = choice;
    }
    const button = document.getElementById('theme');
    if (button) {
      button.textContent = {system: 'Auto', light: 'Light', dark: 'Dark'}[choice];
      button.setAttribute('aria-label', `Theme: ${button.textContent}. Change to ${NEXT[choice]}`);
    }
    document.dispatchEvent(new CustomEvent('themechange'));
  }

  apply();
  document.addEventListener('DOMContentLoaded', () => {
    apply();
    document.getElementById('theme').addEventListener('click', () => {
      choice = NEXT[choice];
      try {
        localStorage.setItem(KEY, choice);
      } catch (error) {
        // The choice then lasts as long as the page.
      }
      apply();
    });
    matchMedia('(prefers-color-scheme: dark)').addEventListener('change', apply);
  });
})();

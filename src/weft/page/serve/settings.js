/* What a person chose for this browser: language and look. Texts are never kept. */

const DARK = matchMedia("(prefers-color-scheme: dark)");

function kept(name) {
  try {
    return localStorage.getItem(`weft-${name}`);
  } catch {
    return null;
  }
}

function keep(name, value) {
  try {
    localStorage.setItem(`weft-${name}`, value);
  } catch {
    // it lasts as long as the page
  }
}

const first = () => (navigator.language.toLowerCase().startsWith("zh") ? "zh" : "en");

export const settings = { language: ["en", "zh"].find((one) => one === kept("language")) ?? first() };

export function chooseLanguage(language) {
  settings.language = language;
  keep("language", language);
}

export const isDark = () => (document.documentElement.dataset.theme ?? (DARK.matches ? "dark" : "light")) === "dark";

export function chooseTheme(theme) {
  document.documentElement.dataset.theme = theme;
  keep("theme", theme);
}

// Call `repaint` where the system turns dark or light.
export const onSystemTheme = (repaint) => DARK.addEventListener("change", repaint);

// What short names are called: apps/dashboard/words.py has them, the page brings them along.

export const words = JSON.parse(document.getElementById("words").textContent);

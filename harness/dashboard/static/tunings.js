// The pages on tunings: their commands can be copied.
"use strict";

dashboard.page(() => {
  document.querySelectorAll("main pre").forEach((commands) => commands.replaceWith(dashboard.commands(commands.textContent)));
});

// Signing in: a token is exchanged for a cookie that scripts cannot read; nothing is kept here.

import { ask, whenUnknown } from "./net.js";
import { byId } from "./dom.js";

// Resolves once the server knows who is there; asks for a token where it does not.
export async function known(first) {
  for (;;) {
    try {
      return await first();
    } catch (problem) {
      if (problem.status !== 401 && problem.status !== 403) throw problem;
      await signIn(problem.status === 403 ? problem.message : "");
    }
  }
}

let asking = null;

export function signIn(words = "") {
  asking ??= new Promise((resolve) => {
    const dialog = byId("sign-in"), token = byId("token"), problem = byId("sign-in-problem");
    problem.textContent = words;
    dialog.oncancel = (event) => event.preventDefault();
    byId("sign-in-form").onsubmit = async (event) => {
      event.preventDefault();
      try {
        await ask("/v1/session", { json: { token: token.value.trim() } });
        token.value = "";
        dialog.close();
        asking = null;
        byId("sign-out").hidden = false;
        resolve();
      } catch (refused) {
        problem.textContent = refused.message;
      }
    };
    if (!dialog.open) dialog.showModal();
  });
  return asking;
}

whenUnknown(() => { if (!asking && document.body.dataset.ready) signIn("The session is over.").then(() => location.reload()); });

byId("sign-out").onclick = async () => {
  await ask("/v1/session", { method: "DELETE" });
  location.reload();
};

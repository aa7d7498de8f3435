// Keeps the page up to date: it asks what waits now and is answered when that changes. What a person is typing stays.
const waiting = document.getElementById("waiting");
const state = document.getElementById("state");
const said = document.getElementById("done");
const title = document.title;
const usual = state ? state.textContent : "";

// Times are shown as the clock of this browser has them; their titles say UTC.
function local(within) {
	const two = (n) => String(n).padStart(2, "0"), now = new Date();
	for (const t of within.querySelectorAll("time[datetime]")) {
		const at = new Date(t.getAttribute("datetime"));
		const day = `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())} `;
		t.textContent = (at.toDateString() === now.toDateString() ? "" : day) +
			[at.getHours(), at.getMinutes(), at.getSeconds()].map(two).join(":");
	}
}

// The list of calls until a moment of this browser's clock.
const until = document.getElementById("until");
function useClock(form) {
	const moment = form.elements.until, hint = form.querySelector("label span");
	if (moment.defaultValue) {
		const at = new Date(moment.defaultValue + "Z");
		moment.value = new Date(at - at.getTimezoneOffset() * 60_000).toISOString().slice(0, 16);
	}
	hint.remove();
	form.addEventListener("submit", (e) => {
		e.preventDefault();
		const where = new URL(form.action);
		where.search = new URLSearchParams(new FormData(form));
		where.searchParams.delete("until");
		if (moment.value) {
			where.searchParams.set("before", new Date(moment.value).toISOString());
		}
		location.assign(where);
	});
}

function tick() {
	for (const left of document.querySelectorAll("[data-until]")) {
		const s = Math.max(0, Math.round((new Date(left.dataset.until) - Date.now()) / 1000));
		left.textContent = s < 120 ? `${s} s left` : `${Math.floor(s / 60)} min left`;
	}
}

function count() {
	const n = waiting.querySelectorAll("article[data-id]").length;
	document.title = n > 0 ? `(${n}) ${title}` : title;
}

function take(fresh) {
	const ids = new Set([...fresh.querySelectorAll("article[data-id]")].map((a) => a.dataset.id));
	for (const a of waiting.querySelectorAll("article[data-id]")) {
		if (!ids.has(a.dataset.id)) {
			a.remove();
		}
	}
	let news = 0;
	for (const a of fresh.querySelectorAll("article[data-id]")) {
		if (!document.getElementById(a.id)) {
			local(a);
			waiting.append(document.adoptNode(a));
			news++;
		}
	}
	for (const p of waiting.querySelectorAll(":scope > p")) {
		p.remove();
	}
	for (const p of fresh.querySelectorAll(":scope > p")) {
		waiting.append(document.adoptNode(p));
	}
	waiting.dataset.version = fresh.dataset.version;
	count();
	if (news > 0) {
		said.textContent = news === 1 ? "A call waits for your approval." : `${news} calls wait for your approval.`;
		if (document.hidden && "Notification" in window && Notification.permission === "granted") {
			new Notification("codehand", { body: said.textContent, tag: "codehand" });
		}
	}
}

async function follow() {
	for (;;) {
		try {
			const where = new URL("console/live" + location.search, location.href);
			where.searchParams.delete("done");
			where.searchParams.set("seen", waiting.dataset.version);
			const r = await fetch(where, { cache: "no-store" });
			if (r.status === 401 || r.status === 403) {
				state.textContent = "You are not signed in any more. Load this page again.";
				return;
			}
			if (!r.ok) {
				throw new Error(r.status);
			}
			const fresh = new DOMParser().parseFromString(await r.text(), "text/html");
			take(fresh.getElementById("waiting"));
			const pause = document.getElementById("pause");
			if (!pause.contains(document.activeElement)) {
				local(fresh.getElementById("pause"));
				pause.replaceWith(document.adoptNode(fresh.getElementById("pause")));
			}
			state.textContent = usual;
		} catch {
			state.textContent = "The server does not answer. This page tries again.";
			await new Promise((done) => setTimeout(done, 3000));
		}
	}
}

// Activity: the list is drawn anew when there are news, but not under the hands of who uses the keyboard in it.
async function watch(shown) {
	for (;;) {
		try {
			const where = new URL("console/activity" + location.search, location.href);
			where.searchParams.delete("done");
			where.searchParams.set("seen", shown.dataset.stamp);
			const r = await fetch(where, { cache: "no-store" });
			if (r.status === 401 || r.status === 403) {
				state.textContent = "You are not signed in any more. Load this page again.";
				return;
			}
			if (!r.ok) {
				throw new Error(r.status);
			}
			const fresh = new DOMParser().parseFromString(await r.text(), "text/html").getElementById("activity");
			while (shown.contains(document.activeElement) || [...shown.querySelectorAll("input[type=text]")].some((i) => i.value)) {
				await new Promise((done) => document.addEventListener("focusout", () => setTimeout(done), { once: true }));
			}
			local(fresh);
			shown.replaceWith(document.adoptNode(fresh));
			shown = fresh;
			useClock(document.getElementById("until"));
			state.textContent = usual;
		} catch {
			state.textContent = "The server does not answer. This page tries again.";
			await new Promise((done) => setTimeout(done, 3000));
		}
	}
}

local(document);
if (until) {
	useClock(until);
}
const list = document.getElementById("activity");
if (list && list.dataset.live) {
	watch(list);
}
// Texts to copy. A browser lets a page do that over https and on loopback alone.
for (const block of navigator.clipboard ? document.querySelectorAll(".copied") : []) {
	const button = block.querySelector("button"), text = block.querySelector("pre, textarea");
	button.hidden = false;
	button.addEventListener("click", async () => {
		await navigator.clipboard.writeText(text.value ?? text.textContent);
		button.textContent = "Copied";
	});
}
// The browser's notifications need a click of the person.
const tell = document.getElementById("tell");
if (tell && "Notification" in window && Notification.permission === "default") {
	tell.hidden = false;
	tell.addEventListener("click", async () => {
		tell.hidden = await Notification.requestPermission() !== "default";
	});
}
if (waiting && state) {
	count();
	follow();
	setInterval(tick, 1000);
}

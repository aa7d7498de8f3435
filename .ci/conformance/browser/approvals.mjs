// The page of serve in Chromium: calls of a client that cannot ask are approved there, on phone and desk, light and
// dark, by keyboard, without script, by two browsers at once, and never by a page of another port.
//
// usage: node approvals.mjs --url URL [--out DIR]
//
// The URL is that of a server without a sign-in. Each check is a line, `ok NAME` or `FAIL NAME: why`. Pictures go to DIR.
import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import { parseArgs } from 'node:util';

import { accessible, check, client, finish, launch, open, shoot, tab } from './browser.mjs';

const { values: flags } = parseArgs({ options: { url: { type: 'string' }, out: { type: 'string' } } });
const origin = flags.url, browser = await launch();
const sizes = { phone: { width: 360, height: 640 }, desk: { width: 1280, height: 800 } };
const quiet = (page) => assert.deepEqual(page.wrong, []);
const once = 'button[value="allow once"]', deny = 'button[value=deny]';

const { rpc, last } = await client(origin);

/** push is a call that a person must approve; it fails when it runs, since there is nowhere to push to. */
function push(what, signal) {
	const call = rpc('tools/call', {
		name: 'run_shell', arguments: { command: `git push --force ${what}`, description: 'Publish' }, _meta: { progressToken: last() + 1 },
	}, signal);
	call.catch(() => {});
	return call;
}

/** ran says whether a call was carried out. */
async function ran(call) {
	const result = await call;
	const decision = result._meta['codehand/decision'];
	return decision.decision === 'allow' && decision.asked === true;
}

const card = (page, what) => page.locator('article', { hasText: what });

for (const [size, viewport] of Object.entries(sizes)) {
	for (const colorScheme of ['light', 'dark']) {
		await check(`${size}, ${colorScheme}: approved by keyboard, accessible, at once`, async () => {
			const page = await open(browser, origin, { viewport, colorScheme }), what = `${size}-${colorScheme}`;
			await page.goto(`${origin}/`);
			await accessible(page);
			await shoot(page, flags.out, `nothing-${what}`);
			const call = push(what);
			await card(page, what).waitFor({ timeout: 5000 });
			assert.match(await page.title(), /^\(1\) /);
			await accessible(page);
			await shoot(page, flags.out, `approval-${what}`);
			await tab(page, once);
			await page.keyboard.press('Enter');
			assert(await ran(call), 'the call did not go on');
			await page.waitForSelector('text=/You (allowed|denied) it/');
			await accessible(page);
			quiet(page);
			await page.context().close();
		});
	}
}

await check('Enter behind a reason denies', async () => {
	const page = await open(browser, origin, { viewport: sizes.desk });
	await page.goto(`${origin}/`);
	const call = push('enter');
	await card(page, 'enter').locator('input[type=text]').fill('not <b>today</b>');
	await page.keyboard.press('Enter');
	assert.match((await call).content[0].text, /USER_DECLINED: .* They said: not <b>today<\/b>/);
	quiet(page);
	await page.context().close();
});

await check('what is typed stays when another call comes, and a withdrawn one goes', async () => {
	const page = await open(browser, origin, { viewport: sizes.desk });
	await page.goto(`${origin}/`);
	const first = push('first');
	await card(page, 'first').locator('input[type=text]').fill('half a rea');
	const leaving = new AbortController();
	push('second', leaving.signal);
	await card(page, 'second').waitFor();
	assert.equal(await card(page, 'first').locator('input[type=text]').inputValue(), 'half a rea');
	await rpc('notifications/cancelled', { requestId: last(), reason: 'no' });
	await card(page, 'second').waitFor({ state: 'detached', timeout: 10_000 });
	leaving.abort();
	await card(page, 'first').locator(deny).click();
	assert(!await ran(first));
	quiet(page);
	await page.context().close();
});

await check('markup in a command is text', async () => {
	const page = await open(browser, origin, { viewport: sizes.desk });
	await page.goto(`${origin}/`);
	const evil = `'<script>window.hurt=1</script><img src=x onerror=window.hurt=1>\u202e${'x'.repeat(5_000)}'`;
	const call = push(evil);
	await page.waitForSelector(once);
	assert.equal(await page.evaluate(() => window.hurt), undefined);
	assert.match(await page.locator('pre').innerText(), /<script>window\.hurt=1<\/script>[\s\S]*\\u202e/);
	await accessible(page);
	await page.locator(deny).click();
	await call;
	quiet(page);
	await page.context().close();
});

await check('without script', async () => {
	const page = await open(browser, origin, { viewport: sizes.phone, javaScriptEnabled: false });
	await page.goto(`${origin}/`);
	const call = push('scriptless');
	await card(page, 'scriptless').waitFor({ timeout: 15_000 }); // the page loads itself anew while nothing waits
	await shoot(page, flags.out, 'approval-without-script');
	await page.locator(once).click();
	await page.waitForSelector('text=/You (allowed|denied) it/');
	assert(await ran(call));
	quiet(page);
	await page.context().close();
});

await check('of two browsers one counts', async () => {
	const pages = await Promise.all([0, 1].map(() => open(browser, origin, { viewport: sizes.desk })));
	await Promise.all(pages.map((p) => p.goto(`${origin}/`)));
	const call = push('race');
	await Promise.all(pages.map((p) => card(p, 'race').waitFor()));
	const said = await Promise.all(pages.map(async (p) => {
		const form = await card(p, 'race').locator('form').first().evaluate((f) => Object.fromEntries(new FormData(f)));
		return p.evaluate(async (form) => {
			const body = new URLSearchParams({ ...form, 'f-decision': 'allow once' });
			return (await fetch('console/answer', { method: 'POST', body, headers: { Accept: 'application/json' } })).json();
		}, form);
	}));
	assert.deepEqual(said.map((s) => s.done).sort(), ['allowed', 'over']);
	assert(await ran(call));
	await Promise.all(pages.map((p) => p.context().close()));
});

await check('a page of another port answers nothing, reads nothing and frames nothing', async () => {
	const page = await open(browser, origin, { viewport: sizes.desk });
	await page.goto(`${origin}/`);
	const call = push('foreign');
	await card(page, 'foreign').waitFor();
	const form = await card(page, 'foreign').locator('form').first().evaluate((f) => Object.fromEntries(new FormData(f)));
	const other = createServer((_, response) => {
		response.setHeader('Content-Type', 'text/html');
		response.end(`<!doctype html><title>other</title><iframe src="${origin}/"></iframe><form method="post" action="${origin}/console/answer">
<input name="csrf" value="${form.csrf}"><input name="id" value="${form.id}"><button name="f-decision" value="allow once">x</button></form>`);
	});
	await new Promise((done) => other.listen(0, '127.0.0.1', done));
	const from = await (await browser.newContext()).newPage();
	await from.goto(`http://127.0.0.1:${other.address().port}/`);
	const read = await from.evaluate((at) => fetch(at).then((r) => r.text()).catch(() => 'refused'), `${origin}/`);
	assert.equal(read, 'refused');
	const blind = await from.evaluate((at) => fetch(at, { mode: 'no-cors', method: 'POST', body: 'x' }).then((r) => r.type).catch(() => 'refused'), `${origin}/console/answer`);
	assert.equal(blind, 'refused');
	assert.equal(await from.frames()[1].evaluate(() => document.querySelectorAll('article').length).catch(() => 0), 0);
	await from.click('button');
	await from.waitForSelector('text=Not from here');
	await card(page, 'foreign').locator(deny).click();
	assert(!await ran(call));
	other.close();
	await from.context().close();
	await page.context().close();
});

await finish(browser);

// The pages of sign-in in Chromium: phone and desk, light and dark, by keyboard, without script, with a passkey.
//
// usage: node pages.mjs --authorize URL --verifier V --password P [--out DIR]
//
// The URL is one of a client whose redirect URI is on loopback; its host must be localhost, since an address has no
// passkeys. Over https a person stays signed in, over plain http each page of another client asks again. Each check is a line, `ok NAME` or `FAIL NAME: why`. Pictures go to DIR.
import assert from 'node:assert/strict';
import { parseArgs } from 'node:util';

import { accessible, at, authenticator, callback, check, comesBack, finish, launch, open, shoot, tab, types } from './browser.mjs';

const { values: flags } = parseArgs({
	options: { authorize: { type: 'string' }, password: { type: 'string' }, verifier: { type: 'string' }, out: { type: 'string' } },
});
const client = await callback(), browser = await launch();
const authorize = at(flags.authorize, client.port), origin = new URL(authorize).origin;
const sizes = { phone: { width: 360, height: 740 }, desk: { width: 1280, height: 900 } };

const approve = 'button[value=approve]', refuse = 'button[value=refuse]';
const quiet = (page) => assert.deepEqual(page.wrong, []);

async function enter(page) {
	await types(page, flags.password);
	await page.keyboard.press('Enter');
}

/** signIn goes as far as the page that asks. */
async function signIn(page) {
	await page.goto(authorize);
	await enter(page);
	await page.waitForSelector(approve);
}

/** account is the page of what a person allowed, in a browser that was signed in. */
async function account(page) {
	await comesBack(page, `${origin}/signin/`, '#keys', () => enter(page));
}

/** answered is how a sign-in ends: the browser is at the client, which gets its tokens. */
async function answered(page, error) {
	const { url, referer } = await client.next();
	await page.waitForURL(/\/callback/);
	assert.equal(url.searchParams.get('error'), error ?? null);
	assert.equal(url.searchParams.has('code'), !error);
	assert.equal(url.searchParams.get('iss'), origin);
	assert.equal(referer, undefined, `the client sees where the browser was: ${referer}`);
	if (error) return;
	const { searchParams: asked } = new URL(authorize);
	const tokens = await fetch(`${origin}/oauth/token`, {
		method: 'POST', body: new URLSearchParams({
			grant_type: 'authorization_code', code: url.searchParams.get('code'), client_id: asked.get('client_id'),
			redirect_uri: asked.get('redirect_uri'), code_verifier: flags.verifier,
		}),
	});
	assert.equal(tokens.status, 200, await tokens.text());
}

for (const [size, viewport] of Object.entries(sizes)) {
	for (const colorScheme of ['light', 'dark']) {
		await check(`${size}, ${colorScheme}: every page, accessible, by keyboard`, async () => {
			const page = await open(browser, origin, { viewport, colorScheme }), name = (what) => `${what}-${size}-${colorScheme}`;
			await page.goto(authorize);
			await accessible(page);
			await shoot(page, flags.out, name('login'));
			await types(page, 'not the password');
			assert.equal(await page.inputValue('input[type=password]'), 'not the password', 'the password has the focus at once');
			await page.keyboard.press('Enter');
			await page.waitForSelector('[role=alert]');
			await accessible(page);
			await shoot(page, flags.out, name('login-wrong'));
			await types(page, flags.password);
			await page.keyboard.press('Enter');
			await page.waitForSelector(approve);
			await accessible(page);
			await shoot(page, flags.out, name('ask'));
			await tab(page, 'input[name=access]');
			await page.keyboard.press('ArrowDown');
			assert.equal(await page.inputValue('input[name=access]:checked'), 'read');
			await tab(page, approve);
			await page.keyboard.press('Enter');
			await answered(page);
			await comesBack(page, authorize, refuse, async () => {
				await accessible(page);
				await shoot(page, flags.out, name('login-again'));
				await enter(page);
			});
			await tab(page, refuse);
			await page.keyboard.press('Enter');
			await answered(page, 'access_denied');
			await account(page);
			await accessible(page);
			await shoot(page, flags.out, name('account'));
			await page.goto(`${origin}/signin/ask/${'a'.repeat(26)}`);
			await accessible(page);
			await shoot(page, flags.out, name('gone'));
			quiet(page);
			const dark = await page.evaluate(() => getComputedStyle(document.body).backgroundColor.match(/\d+/g).slice(0, 3).every((c) => c < 90));
			assert.equal(dark, colorScheme === 'dark', 'the colours of the page');
			await page.context().close();
		});
	}
}

await check('without script', async () => {
	const page = await open(browser, origin, { viewport: sizes.phone, javaScriptEnabled: false });
	await signIn(page);
	assert.equal(await page.locator('[data-passkey]:visible').count(), 0, 'what needs script is shown');
	await page.click(approve);
	await answered(page);
	await account(page);
	const grants = await page.locator('form[action$=revoke] button').count();
	assert(grants > 0, 'no grant can be ended');
	await page.locator('form[action$=revoke] button').first().click();
	await page.waitForSelector('#keys'); // still signed in
	assert.equal(await page.locator('form[action$=revoke] button').count(), grants - 1, 'grants after one was ended');
	quiet(page);
	await page.context().close();
});

await check('text at twice its size', async () => {
	const page = await open(browser, origin, { viewport: { width: 640, height: 900 }, deviceScaleFactor: 2 });
	await signIn(page);
	await page.evaluate(() => { document.documentElement.style.fontSize = '200%'; });
	const wide = await page.evaluate(() => [document.documentElement.scrollWidth, window.innerWidth]);
	assert(wide[0] <= wide[1], `the page is ${wide[0]} wide in a window of ${wide[1]}`);
	await page.context().close();
});

await check('a passkey: made, signed in with, removed', async () => {
	const page = await open(browser, origin, { viewport: sizes.desk });
	const { cdp, authenticatorId, keys } = await authenticator(page);
	await signIn(page);
	await page.click(refuse);
	await answered(page, 'access_denied');
	await account(page);
	await page.click('[data-passkey=register] button');
	await page.waitForSelector('ul.keys li');
	assert.equal((await keys()).length, 1);
	await accessible(page);
	await shoot(page, flags.out, 'account-passkey');
	await page.click('form[action$=logout] button');
	await page.waitForLoadState();
	await page.context().clearCookies();
	await page.goto(authorize);
	await page.click('[data-passkey=login] button');
	await page.waitForSelector(approve);
	await page.click(approve);
	await answered(page);
	await cdp.send('WebAuthn.setUserVerified', { authenticatorId, isUserVerified: false }); // somebody who holds the device
	await page.context().clearCookies();
	await page.goto(authorize);
	await page.click('[data-passkey=login] button');
	await page.waitForFunction(() => document.querySelector('[data-passkey=login] [role=status]').textContent !== '');
	assert.equal(await page.locator(approve).count(), 0, 'a passkey without its person signs in');
	await cdp.send('WebAuthn.setUserVerified', { authenticatorId, isUserVerified: true });
	await signIn(page);
	await page.click(refuse);
	await answered(page, 'access_denied');
	await account(page);
	await page.click('form[action$="passkey/remove"] button');
	await page.getByText('None. A passkey signs you in').waitFor();
	assert.equal(await page.locator('ul.keys li').count(), 0);
	await page.context().clearCookies();
	await page.goto(authorize);
	await page.click('[data-passkey=login] button');
	await page.waitForFunction(() => document.querySelector('[data-passkey=login] [role=status]').textContent !== '');
	assert.equal(await page.locator(approve).count(), 0, 'a passkey that was removed signs in');
	quiet(page);
	await page.context().close();
});

await check('another site shows no page of ours in a frame', async () => {
	const page = await open(browser, origin);
	await page.goto(`http://127.0.0.1:${client.port}/`);
	await page.setContent(`<iframe src="${authorize}"></iframe>`);
	await page.waitForTimeout(0);
	const frame = await page.waitForSelector('iframe').then((f) => f.contentFrame());
	await frame.waitForLoadState().catch(() => {});
	assert.equal(await frame.locator('input[type=password]').count(), 0);
	await page.context().close();
});

await finish(browser, client);

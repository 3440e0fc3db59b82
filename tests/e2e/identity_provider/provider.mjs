// The certified npm package oidc-provider, as the tests need it: one client, people who sign in by their name alone, and moods
// in which it gives out id tokens that must not be believed, signed with its own key all the same.
import { exportJWK, generateKeyPair, decodeJwt, SignJWT } from 'jose';
import { Provider } from 'oidc-provider';

const { PORT, CLIENT_REDIRECT, CLIENT_AFTER } = process.env;
const issuer = `http://127.0.0.1:${PORT}`;
const makeKey = async (kid) => {
  const { privateKey } = await generateKeyPair('RS256', { extractable: true });
  return { ...(await exportJWK(privateKey)), kid, alg: 'RS256', use: 'sig', privateKey };
};
let key = await makeKey('first');
let mood = {};

const provider = new Provider(issuer, {
  clients: [{
    client_id: 'benchyard',
    client_secret: 'canary-client-secret',
    redirect_uris: [CLIENT_REDIRECT],
    post_logout_redirect_uris: [CLIENT_AFTER],
    grant_types: ['authorization_code', 'refresh_token', 'urn:ietf:params:oauth:grant-type:device_code'],
  }],
  jwks: { keys: [(({ privateKey, ...jwk }) => jwk)(key)] },
  cookies: { keys: ['only for tests'] },
  claims: { openid: ['sub'], email: ['email'], profile: ['name'] },
  conformIdTokenClaims: false,
  scopes: ['openid', 'offline_access', 'email', 'profile'],
  features: { deviceFlow: { enabled: true }, rpInitiatedLogout: { enabled: true }, revocation: { enabled: true } },
  findAccount: (_ctx, sub) => ({
    accountId: sub,
    claims: () => ({ sub, email: `${sub}@example.com`, name: `Name of ${sub}` }),
  }),
  ttl: { AccessToken: 120, IdToken: 120, RefreshToken: 86400, Grant: 86400, Session: 86400, Interaction: 3600, AuthorizationCode: 60, DeviceCode: 600 },
  rotateRefreshToken: true,
  renderError: (ctx, out) => { ctx.type = 'text'; ctx.body = JSON.stringify(out); },
});

provider.use(async (ctx, next) => {
  if (ctx.path === '/mood') {
    const body = [];
    for await (const piece of ctx.req) body.push(piece);
    mood = JSON.parse(Buffer.concat(body).toString());
    if (mood.newKey) key = await makeKey(mood.newKey);
    ctx.body = mood;
    return;
  }
  if (ctx.path === '/token' && mood.refuseRefresh) {
    ctx.status = 400;
    ctx.body = { error: 'invalid_grant', error_description: 'the session was ended' };
    return;
  }
  if (ctx.path === '/token' && mood.away) {
    ctx.status = 503;
    ctx.body = 'away';
    return;
  }
  await next();
  if (ctx.path === '/jwks' && mood.newKey) {
    const { privateKey, d, p, q, dp, dq, qi, ...jwk } = key;
    ctx.body = { keys: [jwk] };
  }
  if (ctx.path === '/token' && ctx.body?.id_token && (mood.claims || mood.shift || mood.newKey || mood.foreignKey)) {
    const claims = { ...decodeJwt(ctx.body.id_token), ...(mood.claims ?? {}) };
    for (const name of ['iat', 'exp']) claims[name] += mood.shift ?? 0;
    const signing = mood.foreignKey ? await makeKey(key.kid) : key;
    ctx.body = { ...ctx.body, id_token: await new SignJWT(claims).setProtectedHeader({ alg: 'RS256', kid: signing.kid }).sign(signing.privateKey) };
  }
});

provider.listen(Number(PORT), '127.0.0.1', () => console.log('listening'));

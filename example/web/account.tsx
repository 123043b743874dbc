import { useAuth } from "platform/react";
import { useState } from "react";
import { client } from "./client.ts";
import { Form } from "./parts.tsx";
import { navigate } from "./router.tsx";

export function AccountPage() {
  const { user } = useAuth();
  const [isNew, setNew] = useState(false);
  if (user !== null && !user.isAnonymous) {
    return (
      <section className="narrow">
        <h1>Hello, {user.displayName}</h1>
        <p>
          You are signed in as {user.email}
          {user.role !== "user" && `, ${user.role}`}.
        </p>
        <button type="button" onClick={() => void client.auth.signOut()}>
          Sign out
        </button>
      </section>
    );
  }
  async function send({ email = "", password = "", displayName = "" }: Record<string, string>) {
    if (isNew) await client.auth.signUp({ email, password, displayName });
    else await client.auth.signIn({ email, password });
    navigate("/");
  }
  return (
    <section className="narrow">
      <h1>{isNew ? "Join the club" : "Welcome back"}</h1>
      <Form className="stack" onSend={send}>
        {isNew && (
          <label>
            Name <input name="displayName" required maxLength={40} autoComplete="nickname" />
          </label>
        )}
        <label>
          Email <input name="email" type="email" required autoComplete="email" />
        </label>
        <label>
          Password
          <input
            name="password"
            type="password"
            required
            minLength={8}
            autoComplete={isNew ? "new-password" : "current-password"}
          />
        </label>
        <button type="submit">{isNew ? "Sign up" : "Sign in"}</button>
      </Form>
      <button type="button" className="quiet" onClick={() => setNew(!isNew)}>
        {isNew ? "I have an account" : "I am new here"}
      </button>
    </section>
  );
}

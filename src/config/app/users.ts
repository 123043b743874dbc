export interface UserSummary {
  id: string;
  email: string | null;
  displayName: string | null;
  role: string;
  createdAt: string;
}

export interface UsersAccessor {
  /** null when there is no such user. */
  get(id: string): Promise<UserSummary | null>;
}

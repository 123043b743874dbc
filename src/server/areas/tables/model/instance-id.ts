/** An id cannot contain a path, and cannot be `tables`, which is a segment of the endpoints' paths. */
const INSTANCE_ID = /^(?!tables$)[A-Za-z0-9_-]{1,128}$/;

export const isInstanceId = (id: string): boolean => INSTANCE_ID.test(id);

/** The internal command that runs a job. It has a file of its own, as every command line loads it. */
export const CERTIFICATE_JOB_COMMAND = "certificate-job";

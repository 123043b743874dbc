-- Who has created an instance, in namespaces with a quota of instances (`databases.NAME.quota.instancesPerUser`).

CREATE TABLE "instance_creators" (
	"namespace" text NOT NULL,
	"instanceId" text NOT NULL,
	"userId" text NOT NULL,
	PRIMARY KEY("namespace", "instanceId")
) STRICT, WITHOUT ROWID;
CREATE INDEX "instance_creators_user" ON "instance_creators" ("namespace","userId");

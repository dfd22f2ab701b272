BEGIN TRANSACTION;
CREATE TABLE projects(project TEXT PRIMARY KEY, touched INTEGER NOT NULL, failures TEXT NOT NULL);
CREATE TABLE sessions(
        session TEXT PRIMARY KEY,
        updated_ms INTEGER NOT NULL,
        steps INTEGER NOT NULL,
        state TEXT NOT NULL
    );
INSERT INTO "sessions" VALUES('default/stopped',1795120428003,1,'{"money":{"agents":[{"name":null,"model":null,"waste":{"unplaced":0,"last_turn":5,"usage_first":false,"looping":true},"looped_at":5,"turns":6,"counted":[16917178869402548776]}]}}
{"version":3,"steps":6,"ledger":{"steps":6,"tokens":0,"all_tokens":0,"usd":0.0,"first":1795120427998,"last":1795120428003,"active":{"ms":5,"last":1795120428003},"turns":6,"subagents":0,"raises":0,"raised_at":0,"warned":false,"reached_at":null},"ended":{"session":"stopped","step":5,"id":"d9ea4c8234a","action":"stop","level":2,"rung":"terminate","message":"Loop detected: 5 consecutive similar turns (>0.85 similarity). Session will be terminated.","user_message":"deloop stopped the run: 5 turns say nearly the same (d9ea4c8234a)","role":null,"calls":[],"status":"TERMINATED","findings":[],"by":{"detector":"similar-turn","rule":"at"}},"agents":[{"name":null,"seen":0,"history":{"scheme":"xxh3-128/1","turns":0,"calls":0,"changes":0,"requests":0,"request":[0,0],"origin":null,"turn_id":0,"ids_repeat":false,"recent":[],"kept":[],"refusal":"","spoke":0,"tools":[]},"memories":{"similar-turn":{"before":{"similar":0,"since":0},"run":{"similar":0,"since":0},"window":[]}},"ladder":{"occurrences":[],"given":[],"episodes":[],"stopped":null},"alerts":{"episodes":[]}}]}');
INSERT INTO "sessions" VALUES('default/w1',1795120428004,1,'{"money":{"agents":[{"name":null,"model":null,"waste":{"unplaced":0,"last_turn":0,"usage_first":false,"looping":false},"looped_at":null,"turns":1,"counted":[]}]}}
{"version":3,"steps":1,"ledger":{"steps":1,"tokens":0,"all_tokens":0,"usd":0.0,"first":1795120428004,"last":1795120428004,"active":{"ms":0,"last":1795120428004},"turns":1,"subagents":0,"raises":0,"raised_at":0,"warned":false,"reached_at":null},"agents":[{"name":null,"seen":0,"history":{"scheme":"xxh3-128/1","turns":1,"calls":1,"changes":0,"requests":0,"request":[0,0],"origin":1795120428004,"turn_id":0,"ids_repeat":false,"recent":[[18056848161217818858,[0,0,0,3383318018,3355751775,0,0,0,0],[65535,0,45290],[0,0,0,0],["run","checks"],[false,false,false,false],[null,"Open","stuck","none"]]],"kept":[{"ordinal":0,"words":[46883,55787],"about":"make"}],"refusal":"","spoke":0,"tools":[{"name":"bash","calls":1,"failures":0}]},"memories":{"similar-turn":{"before":{"similar":0,"since":0},"run":{"similar":0,"since":0},"window":[[0,{"words":[3226550417892317118,13639706517506353182]}]]}},"ladder":{"occurrences":[],"given":[],"episodes":[],"stopped":null},"alerts":{"episodes":[]}}]}');
INSERT INTO "sessions" VALUES('default/w2',1795120428005,1,'{"money":{"agents":[{"name":null,"model":null,"waste":{"unplaced":0,"last_turn":0,"usage_first":false,"looping":false},"looped_at":null,"turns":1,"counted":[]}]}}
{"version":3,"steps":1,"ledger":{"steps":1,"tokens":0,"all_tokens":0,"usd":0.0,"first":1795120428005,"last":1795120428005,"active":{"ms":0,"last":1795120428005},"turns":1,"subagents":0,"raises":0,"raised_at":0,"warned":false,"reached_at":null},"agents":[{"name":null,"seen":0,"history":{"scheme":"xxh3-128/1","turns":1,"calls":1,"changes":0,"requests":0,"request":[0,0],"origin":1795120428005,"turn_id":0,"ids_repeat":false,"recent":[[18056848161217818858,[0,0,0,3383318018,3355751775,0,0,0,0],[65535,0,45290],[0,0,0,0],["run","checks"],[false,false,false,false],[null,"Open","stuck","none"]]],"kept":[{"ordinal":0,"words":[46883,55787],"about":"make"}],"refusal":"","spoke":0,"tools":[{"name":"bash","calls":1,"failures":0}]},"memories":{"similar-turn":{"before":{"similar":0,"since":0},"run":{"similar":0,"since":0},"window":[[0,{"words":[3226550417892317118,13639706517506353182]}]]}},"ladder":{"occurrences":[],"given":[],"episodes":[],"stopped":null},"alerts":{"episodes":[]}}]}');
CREATE TABLE shared_amounts(
        record INTEGER NOT NULL,
        field TEXT NOT NULL,
        amount INTEGER NOT NULL,
        PRIMARY KEY(record, field)
    ) WITHOUT ROWID;
INSERT INTO "shared_amounts" VALUES(4,'l	unknown	main',1);
INSERT INTO "shared_amounts" VALUES(4,'x	unknown	main',1);
INSERT INTO "shared_amounts" VALUES(6,'l	unknown	main',1);
INSERT INTO "shared_amounts" VALUES(6,'s	unknown	main',1);
INSERT INTO "shared_amounts" VALUES(6,'x	unknown	main',1);
CREATE TABLE shared_events(id INTEGER PRIMARY KEY AUTOINCREMENT, text TEXT NOT NULL);
CREATE TABLE shared_records(
        id INTEGER PRIMARY KEY,
        kind TEXT NOT NULL,
        record_group TEXT NOT NULL,
        name TEXT NOT NULL,
        expires_ms INTEGER NOT NULL,
        text TEXT NOT NULL,
        UNIQUE(kind, record_group, name)
    );
INSERT INTO "shared_records" VALUES(1,'text','money','day/2026-11-19/default',1803760428001,'');
INSERT INTO "shared_records" VALUES(2,'text','money','week/2026-11-16/default',1831408428001,'');
INSERT INTO "shared_records" VALUES(3,'mark','money/default','14:day/2026-11-19e70cecf69edd2ece-1',1795120728254,'');
INSERT INTO "shared_records" VALUES(4,'table','money/default','day/2026-11-19',1803760428254,'');
INSERT INTO "shared_records" VALUES(5,'mark','money/default','15:week/2026-11-16e70cecf69edd2ece-2',1795120728254,'');
INSERT INTO "shared_records" VALUES(6,'table','money/default','week/2026-11-16',1831408428254,'');
CREATE TABLE shared_records_version(version INTEGER);
INSERT INTO "shared_records_version" VALUES(1);
CREATE TABLE shared_texts(id INTEGER PRIMARY KEY AUTOINCREMENT, record INTEGER NOT NULL, text TEXT NOT NULL);
CREATE TABLE swarms(swarm TEXT PRIMARY KEY, touched INTEGER NOT NULL, state TEXT NOT NULL);
INSERT INTO "swarms" VALUES('default/team',1,'{"workers":[[17450678103842021044,"w1"],[10469354391034984784,"w2"]],"calls":"M9bsT6L5KuvAAAM9bsT6L5KuvAAB","in_vain":"","listed":[{"about":14941731070924860335,"count":2,"call":{"tool":"bash","about":"make"}}]}');
CREATE TABLE write_back(id INTEGER PRIMARY KEY CHECK (id = 1), mark INTEGER NOT NULL);
INSERT INTO "write_back" VALUES(1,4294967296);
CREATE INDEX sessions_by_age ON sessions(updated_ms);
CREATE INDEX shared_records_by_expiry ON shared_records(expires_ms);
CREATE INDEX shared_texts_by_record ON shared_texts(record, id);
CREATE TRIGGER shared_records_gone AFTER DELETE ON shared_records BEGIN
        DELETE FROM shared_amounts WHERE record = old.id;
        DELETE FROM shared_texts WHERE record = old.id;
    END;
DELETE FROM "sqlite_sequence";
COMMIT;
PRAGMA user_version = 4;

BEGIN TRANSACTION;
CREATE TABLE allows(pattern TEXT PRIMARY KEY, since_ms INTEGER NOT NULL);
CREATE TABLE day_usage(
        project TEXT NOT NULL,
        day INTEGER NOT NULL,
        tokens INTEGER NOT NULL,
        usd REAL NOT NULL,
        turns INTEGER NOT NULL,
        subagents INTEGER NOT NULL,
        minutes REAL NOT NULL,
        raises INTEGER NOT NULL,
        PRIMARY KEY(project, day)
    );
CREATE TABLE decisions(
        id TEXT PRIMARY KEY,
        session TEXT NOT NULL,
        agent TEXT NOT NULL,
        subagent TEXT,
        step INTEGER NOT NULL,
        ts INTEGER NOT NULL,
        action TEXT NOT NULL,
        would TEXT,
        level INTEGER NOT NULL,
        detector TEXT,
        summary TEXT,
        message TEXT,
        status TEXT,
        delivered TEXT,
        wrong INTEGER NOT NULL DEFAULT 0,
        rung TEXT,
        findings TEXT,
        recent_calls TEXT,
        run TEXT,
        held TEXT,
        outcome TEXT
    , episode INTEGER, side TEXT);
INSERT INTO "decisions" VALUES('d5a73cc7159','s1','claude-code',NULL,1,1795120429867,'nudge',NULL,1,'call-cycle','`make check` repeated 2 times','⚠️ Loop detected: You appear to be repeating the same sequence of tool calls
without making progress. The following pattern has repeated 2 times:
  1. Bash(make check)

Please try a different approach. Consider:
- Re-reading error messages more carefully
- Trying an alternative solution strategy
- Breaking the problem into smaller steps',NULL,'PreToolUse',0,'warning','[{"calls":[{"about":"make check","tool":"Bash"}],"count":2,"decided":true,"detector":"call-cycle","pattern":"2e65597bcda885ae","period":1,"repeats":"cycle","rule":"laps","score":1.0,"since":0,"summary":"`make check` repeated 2 times","threshold":2,"tool":"Bash"}]','[{"step":0,"tool":"Bash","call":"Bash(make check)","print":"af9cb07a","id":7446784751198501725},{"step":1,"tool":"Bash","call":"Bash(make check)","print":"af9cb07a","id":10279183741576893954}]',NULL,NULL,'continued',NULL,NULL);
INSERT INTO "decisions" VALUES('d2e58ae244c','s1','claude-code',NULL,2,1795120429874,'nudge',NULL,2,'call-cycle','`make check` repeated 3 times','⚠️ Loop detected again: You are still repeating the same sequence of tool calls
without making progress. The following pattern has repeated 3 times:
  1. Bash(make check)

Stop repeating it. The session ends if it occurs once more. Do one of these instead:
- Call Bash with other arguments than those it was given 3 times
- Say what blocks you, and what you have tried, instead of trying it again',NULL,'PreToolUse',0,'stronger-warning','[{"calls":[{"about":"make check","tool":"Bash"}],"count":3,"decided":true,"detector":"call-cycle","pattern":"2e65597bcda885ae","period":1,"repeats":"cycle","rule":"laps","score":1.0,"since":0,"summary":"`make check` repeated 3 times","threshold":2,"tool":"Bash"}]','[{"step":0,"tool":"Bash","call":"Bash(make check)","print":"af9cb07a","id":7446784751198501725},{"step":1,"tool":"Bash","call":"Bash(make check)","print":"af9cb07a","id":10279183741576893954},{"step":2,"tool":"Bash","call":"Bash(make check)","print":"af9cb07a","id":3497166421361476309}]',NULL,NULL,'continued',NULL,NULL);
INSERT INTO "decisions" VALUES('d8591b5a104','s1','claude-code',NULL,3,1795120429881,'stop',NULL,3,'call-cycle','`make check` repeated 4 times','Session stopped: the same sequence of tool calls was repeated after two warnings. The following pattern has repeated 4 times:
  1. Bash(make check)','LOOP_DETECTED','PreToolUse',0,'force-stop','[{"calls":[{"about":"make check","tool":"Bash"}],"count":4,"decided":true,"detector":"call-cycle","pattern":"2e65597bcda885ae","period":1,"repeats":"cycle","rule":"laps","score":1.0,"since":0,"summary":"`make check` repeated 4 times","threshold":2,"tool":"Bash"}]','[{"step":0,"tool":"Bash","call":"Bash(make check)","print":"af9cb07a","id":7446784751198501725},{"step":1,"tool":"Bash","call":"Bash(make check)","print":"af9cb07a","id":10279183741576893954},{"step":2,"tool":"Bash","call":"Bash(make check)","print":"af9cb07a","id":3497166421361476309},{"step":3,"tool":"Bash","call":"Bash(make check)","print":"af9cb07a","id":350775429529025470}]',NULL,NULL,NULL,NULL,NULL);
CREATE TABLE embedding_failures(model TEXT PRIMARY KEY, failed_ms INTEGER NOT NULL);
CREATE TABLE embeddings(
        model TEXT NOT NULL,
        text TEXT NOT NULL,
        vector BLOB NOT NULL,
        stored_ms INTEGER NOT NULL,
        PRIMARY KEY(model, text)
    );
CREATE TABLE hooks(agent TEXT PRIMARY KEY, last_called_ms INTEGER NOT NULL, calls INTEGER NOT NULL);
INSERT INTO "hooks" VALUES('claude-code',1795120429896,6);
CREATE TABLE journal(version INTEGER);
INSERT INTO "journal" VALUES(3);
CREATE TABLE pardons(
        session TEXT NOT NULL,
        detector TEXT NOT NULL,
        pattern INTEGER NOT NULL,
        since_ms INTEGER NOT NULL,
        known INTEGER NOT NULL DEFAULT 0,
        PRIMARY KEY(session, detector, pattern)
    );
CREATE TABLE pauses(session TEXT PRIMARY KEY, until_ms INTEGER NOT NULL);
CREATE TABLE projects(project TEXT PRIMARY KEY, touched INTEGER NOT NULL, failures TEXT NOT NULL);
CREATE TABLE runs(
        run TEXT PRIMARY KEY,
        first TEXT NOT NULL,
        attempt INTEGER NOT NULL,
        started_ms INTEGER NOT NULL,
        after TEXT,
        handoff TEXT,
        session TEXT
    );
CREATE TABLE session_state(session TEXT PRIMARY KEY, updated_ms INTEGER NOT NULL, state TEXT NOT NULL);
INSERT INTO "session_state" VALUES('s1',1795120429896,'{"agents":[{"name":null,"seen":{"calls":[[7446784751198501725,18446744073709551615,true],[10279183741576893954,18446744073709551615,true],[3497166421361476309,18446744073709551615,true],[350775429529025470,18446744073709551615,false],[4857194145110090343,18446744073709551615,false],[17840781512479431589,18446744073709551615,false]],"next":0,"turn":0},"recent_calls":[{"step":0,"tool":"Bash","call":"Bash(make check)","print":"af9cb07a","id":7446784751198501725},{"step":1,"tool":"Bash","call":"Bash(make check)","print":"af9cb07a","id":10279183741576893954},{"step":2,"tool":"Bash","call":"Bash(make check)","print":"af9cb07a","id":3497166421361476309},{"step":3,"tool":"Bash","call":"Bash(make check)","print":"af9cb07a","came":"cancelled","output":"b785b6ec","id":350775429529025470},{"step":5,"tool":"Bash","call":"Bash(make check)","print":"af9cb07a","came":"cancelled","output":"b785b6ec","id":4857194145110090343},{"step":7,"tool":"Bash","call":"Bash(make check)","print":"af9cb07a","came":"cancelled","output":"b785b6ec","id":17840781512479431589}]}],"transcript":{"read":null,"messages":[]}}');
CREATE TABLE sessions(
        session TEXT PRIMARY KEY,
        updated_ms INTEGER NOT NULL,
        steps INTEGER NOT NULL,
        state TEXT NOT NULL
    );
INSERT INTO "sessions" VALUES('s1',1795120429896,9,'{"version":3,"steps":9,"ledger":{"steps":9,"tokens":0,"all_tokens":0,"usd":0.0,"first":1795120429853,"last":1795120429896,"active":{"ms":43,"last":1795120429896},"turns":4,"subagents":0,"raises":0,"raised_at":0,"warned":false,"reached_at":null},"ended":{"session":"s1","step":3,"id":"d8591b5a104","action":"stop","level":3,"rung":"force-stop","message":"Session stopped: the same sequence of tool calls was repeated after two warnings. The following pattern has repeated 4 times:\n  1. Bash(make check)","user_message":"deloop stopped the run: `make check` repeated 4 times (d8591b5a104)","role":null,"calls":[],"status":"LOOP_DETECTED","findings":[],"by":{"detector":"call-cycle","rule":"laps","pattern":"2e65597bcda885ae"}},"agents":[{"name":null,"seen":8,"history":{"scheme":"xxh3-128/1","turns":4,"calls":4,"changes":0,"requests":0,"request":[0,0],"origin":1795120429853,"turn_id":0,"ids_repeat":false,"recent":[[12654183091955750938,[0,0,0,3321592669,3355751775,0,0,0,0],[65535,0,55322],[0,0,0,0],["run","checks"],[true,false,false,false],[null,"Open","stuck","none"]],[12654183091955750938,[1,1,1,3383318018,3355751775,0,0,0,0],[65535,0,55322],[0,0,0,0],["run","checks"],[true,false,false,false],[null,"Open","stuck","none"]],[12654183091955750938,[2,2,2,3651977941,3355751775,0,0,0,0],[65535,0,55322],[0,0,0,0],["run","checks"],[true,false,false,false],[null,"Open","stuck","none"]],[12654183091955750938,[3,3,3,151206846,3355751775,0,0,0,0],[65535,0,55322],[0,0,0,0],["run","checks"],[true,false,false,false],[null,"Open","stuck","none"]]],"kept":[{"ordinal":0,"words":[44854,46883,55787],"about":"make check"},{"ordinal":1,"words":[44854,46883,55787],"about":"make check"},{"ordinal":2,"words":[44854,46883,55787],"about":"make check"},{"ordinal":3,"words":[44854,46883,55787],"about":"make check"}],"refusal":"","spoke":0,"tools":[{"name":"Bash","calls":4,"failures":0}]},"memories":{"call-cycle":{"calls":[["cd1e98e4494a65abaf9cb07a36c6d81a",0],["cd1e98e4494a65abaf9cb07a36c6d81a",1],["cd1e98e4494a65abaf9cb07a36c6d81a",2],["cd1e98e4494a65abaf9cb07a36c6d81a",3]],"names":[[12654183091955750938,{"about":"make check","tool":"Bash"}]],"runs":[3,2,1]}},"ladder":{"occurrences":[{"watch":0,"pattern":3343176686658684334,"count":3,"last":3}],"given":[],"episodes":[],"stopped":null},"alerts":{"episodes":[["call-cycle",0,3]]}}]}');
CREATE TABLE sources(
        session TEXT PRIMARY KEY,
        agent TEXT NOT NULL,
        transcript TEXT,
        run TEXT,
        since_ms INTEGER NOT NULL,
        project TEXT,
        first_ms INTEGER
    );
INSERT INTO "sources" VALUES('s1','claude-code',NULL,NULL,1795120429853,'/tmp',1795120429853);
CREATE TABLE swarms(swarm TEXT PRIMARY KEY, touched INTEGER NOT NULL, state TEXT NOT NULL);
CREATE INDEX sessions_by_age ON sessions(updated_ms);
CREATE INDEX decisions_by_age ON decisions(ts);
CREATE INDEX decisions_by_run ON decisions(run) WHERE run IS NOT NULL;
CREATE INDEX sources_by_run ON sources(run) WHERE run IS NOT NULL;
CREATE INDEX embeddings_by_age ON embeddings(stored_ms);
COMMIT;
PRAGMA user_version = 4;

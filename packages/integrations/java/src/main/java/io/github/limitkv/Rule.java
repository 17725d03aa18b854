package io.github.limitkv;

import java.util.List;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** A limiter's rule as RL.ACQUIRE has it, and how the IETF draft's RateLimit fields tell of it. */
record Rule(String text, String quota, Long windowSeconds) {

    private static final Pattern FORM = Pattern.compile(
        "(?:GCRA|LOG|WINDOW|FIXED) (\\d+) (\\d+)(?: BURST \\d+)?|CAL (\\d+) (HOUR|DAY|WEEK|MONTH)(?: TZ \\S+)?(?: FROM \\d+)?|TOTAL (\\d+)");
    private static final Pattern MISTAKE = Pattern.compile("(ERR|WRONGTYPE|NOPERM|NOAUTH|WRONGPASS|CROSSSLOT)\\b.*");
    private static final Map<String, Long> CALENDAR_SECONDS = Map.of("HOUR", 3600L, "DAY", 86400L, "WEEK", 604800L); // months differ

    static Rule parse(String text) {
        Matcher part = FORM.matcher(text);
        if (!part.matches()) {
            throw new IllegalArgumentException(text + " is no rule for a gateway; FIXED 100 60000 is one");
        }
        if (part.group(1) != null) {
            return new Rule(text, part.group(1), seconds(Long.parseLong(part.group(2))));
        }
        return part.group(3) != null ? new Rule(text, part.group(3), CALENDAR_SECONDS.get(part.group(4))) : new Rule(text, part.group(5), null);
    }

    /** Checks the name of a policy. */
    static String name(String policy) {
        if (!policy.matches("[\\w.:-]+")) {
            throw new IllegalArgumentException(policy + " is no name for a policy");
        }
        return policy;
    }

    List<String> words() { return List.of(text.split(" ")); }

    /** An item of RateLimit-Policy. */
    String policy(String name) {
        return "\"" + name + "\";q=" + quota + (windowSeconds == null ? "" : ";w=" + windowSeconds);
    }

    /** An item of RateLimit: what remains, and when all is back, which is negative if time does not bring it. */
    static String state(String name, long remaining, long resetMillis) {
        return "\"" + name + "\";r=" + Math.max(0, remaining) + (resetMillis < 0 ? "" : ";t=" + seconds(resetMillis));
    }

    /** Rounded up: who comes back then is not too early. */
    static long seconds(long millis) { return (millis + 999) / 1000; }

    static boolean isAboveCapacity(Throwable error) {
        return error.getMessage() != null && error.getMessage().contains("cost is above the limiter's capacity");
    }

    /** Whether an error is a reply that trying again does not mend, such as a rule that is none. */
    static boolean isMistake(Throwable error) {
        return error.getMessage() != null && MISTAKE.matcher(error.getMessage()).matches();
    }
}

#!/bin/sh
# fetch-region.sh REGION: one search, whose units the crontab's line has asked for, and the details of what it found.
#
# Every detail costs 1 unit of the same quota. When the day's units are spent the loop ends cleanly, and so does the job:
# waiting could take hours. A search that fails ends the job with its status, and cron tells of it.
set -euf
region=$1
# One video per line.
IFS='
'

videos=$("$FETCH" search "$region")
for video in $videos; do
    slidegate check "$KEY" --limit "$QUOTA" --quiet || break
    "$FETCH" video "$video"
done

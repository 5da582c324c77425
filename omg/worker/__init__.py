"""All graphs of one home: taken in, observed on time, reflected at night, reported."""
